// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/op.hpp"

/// Describes the performance of a machine by numbers from a data sheet or from measurements, for
/// cost models. SI units: seconds, bytes, bytes/s, FLOP/s.
namespace isoscale::simulate {

/// The share of a peak rate that work of one size reaches, as an entry of a list that is ascending
/// in size. Between two entries the share is interpolated linearly over the logarithm of size;
/// beyond the first and last entry, the share of that entry holds.
struct ReachedShare {
  double size = 0, share = 0;
  bool operator==(const ReachedShare&) const = default;
};

/// Returns the share of the peak that work of `size` reaches; 1 if the list is empty.
[[nodiscard]] inline double reached_share(std::span<const ReachedShare> list, double size) {
  if (list.empty()) return 1;
  const auto above =
      std::ranges::lower_bound(list, size, {}, [](const ReachedShare& at) { return at.size; });
  if (above == list.begin()) return list.front().share;
  if (above == list.end()) return list.back().share;
  const ReachedShare& below = *std::prev(above);
  const double way = std::log(size / below.size) / std::log(above->size / below.size);
  return below.share + way * (above->share - below.share);
}

/// The rate of dense matrix multiplication in one element type.
struct MatrixRate {
  program::DType type = program::DType::bf16;
  program::ComputeMode mode = program::ComputeMode::native;
  double peak = 0;                      ///< FLOP/s
  std::vector<ReachedShare> reached{};  ///< share of the peak, by FLOP of one GEMM
};

/// A fused kernel of causal attention (such as FlashAttention), which never writes the scores to
/// memory. It computes half of each product, and backward computes the scores once more: 2 products
/// forward, 5 backward. The values are the shares of the peak that it reaches by the FLOP of this.
struct AttentionKernel {
  std::string name;
  double forward = 1, backward = 1;
};

/// The rank's processor, as its data sheet describes it.
struct Processor {
  std::vector<MatrixRate> matrix{};
  int units = 0;                        ///< multiprocessors that run tiles; 0 = not known
  int tile_rows = 0, tile_columns = 0;  ///< size of a tile of the output; 0 = not known
  double tile_depth = 0;                ///< extra steps in k for the start and the end of a tile
  std::vector<AttentionKernel> attention{};
  double launch = 0;  ///< seconds from the end of an op to the start of the next
  double power = 0;   ///< watts of the limit under which GEMMs sustain their rates; 0 = not known
};

struct DeviceMemory {
  double capacity = 0;                  ///< bytes that a program may use
  double bandwidth = 0;                 ///< bytes/s, read + written
  std::vector<ReachedShare> reached{};  ///< share of the bandwidth, by bytes of one op
};

/// The link from one rank to others, in one direction.
struct Link {
  double bandwidth = 0;  ///< bytes/s of the wire
  double reached = 1;    ///< share of the bandwidth that large messages get
  double latency = 0;    ///< seconds of one hop
  /// Bytes that a rank passes on as one in a collective; 0 = any byte is passed on at once. It is
  /// the sum over all channels of a rank's link inside a node, or of one port between nodes.
  double chunk = 0;
};

/// A level of switches above those that join neighbouring nodes, such as a spine.
struct Tier {
  int nodes = 1;       ///< nodes that the levels below join
  double share = 1;    ///< links up to it over links down, 1 / oversubscription
  double latency = 0;  ///< seconds of one hop through it
};

/// A way in which a library sends the data of a collective (such as NCCL's LL, LL128 and Simple):
/// protocols that send flags along with the data have lower latency and less bandwidth.
struct Protocol {
  std::string name;
  double hop_inside = 1, hop_across = 1;  ///< factors on the latency of a link
  double share = 1;                       ///< factor on the bandwidth that large messages get
  double most = 0;                        ///< upper limit of the bandwidth, bytes/s; 0 = no limit
  double most_across = 0;                 ///< the same between nodes; 0 = as inside
  double most_two = 0;                    ///< the same between two nodes; 0 = `most_across`
};

/// The algorithms of collectives. multicast: the switch inside a node reduces and multicasts
/// (NVLS), with trees between nodes (NVLS tree). hierarchical: reduce-scatter inside nodes, trees
/// for each part between them, all-gather inside. pat: NCCL's parallel aggregated trees.
enum class Algorithm : std::uint8_t { ring, tree, multicast, hierarchical, pat };
inline constexpr std::array<std::string_view, 5> algorithm_names{"ring", "tree", "multicast",
                                                                 "hierarchical", "pat"};
[[nodiscard]] constexpr std::string_view name(Algorithm algorithm) {
  return algorithm_names[static_cast<std::size_t>(algorithm)];
}

/// The rates of all-reduces in which the switch inside a node reduces and multicasts.
struct Multicast {
  /// Share of `inside`'s bandwidth, if n ranks of a node move S (1 + 1/n) bytes each, by S / n.
  std::vector<ReachedShare> reached{};
  double latency = 0;         ///< seconds that an all-reduce inside a node takes at least
  double across_latency = 0;  ///< seconds of a step of the tree between nodes
  int most_nodes = 0;         ///< the largest number of nodes that use it; 0 = any
};

struct Network {
  int node_ranks = 1;         ///< ranks joined by `inside`: a node, or a rack with one switch
  Link inside{};              ///< link of a rank to the others of its node
  Link across{};              ///< link of one network port to other nodes
  std::vector<Tier> tiers{};  ///< ascending in nodes; empty = every node is a neighbour
  double ports_per_rank = 1;  ///< network ports of a node divided by its ranks
  std::optional<Multicast> multicast{};  ///< present if a node's switch takes part (NVLS)
  double start = 0;            ///< seconds added to each message and collective (not to multicast)
  double message_reached = 0;  ///< share of `inside` for a large message; 0 = inside.reached
  double tree_most = 0;  ///< upper limit of trees over more than two nodes, bytes/s; 0 = no limit
  std::vector<Algorithm> algorithms{Algorithm::ring, Algorithm::tree};
  std::vector<Protocol> protocols{};  ///< empty = one, with the links' latency and bandwidth
};

struct TimedGemm {
  program::DType type = program::DType::f32;
  program::ComputeMode mode = program::ComputeMode::native;
  double m = 0, n = 0, k = 0, batch = 1;
  double seconds = 0;
};

/// A measured op that neither multiplies nor communicates.
struct TimedLocal {
  program::OpKind kind = program::OpKind::copy;
  double bytes = 0, seconds = 0;
};

struct SizeSeconds {
  double bytes = 0, seconds = 0;
};

/// The law by which the time of communication grows with the size of its group, for sizes that were
/// not measured. logarithmic: with the logarithm of the size (trees). proportional: in proportion
/// to the size (rings). fitted: neither is prescribed; each member of this type documents which law
/// then holds.
enum class GrowthLaw : std::uint8_t { fitted, logarithmic, proportional };

/// The way in which a collective moves data over the wires. parts: ranks send parts of a message,
/// as in rings and recursive halving. whole: ranks send whole messages from level to level of a
/// tree (Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49). whole_at_once: each rank of a tree
/// sends whole messages to all ranks below it at once, so that these transfers share the rank's
/// wire.
enum class Moved : std::uint8_t { parts, whole, whole_at_once };

/// The interpolation of a curve between its measured sizes: linear in log time over log size, or in
/// time over size.
enum class Straight : std::uint8_t { in_logs, in_bytes };

/// The measured times of one kind of communication against size, in groups of one shape.
struct TimedCommunication {
  program::OpKind kind = program::OpKind::all_reduce;
  int members = 0, nodes = 0;
  int sharing = 1;                     ///< largest number of groups on one node that ran at once
  std::vector<SizeSeconds> samples{};  ///< ascending in bytes
  std::optional<double> latency{};     ///< seconds
  std::optional<double> bandwidth{};   ///< bytes/s of algbw for very large messages
  Straight between = Straight::in_logs;
  /// The growth law that fits the measured groups of this kind clearly better than the other law
  /// does; groups inside one node and groups over several nodes are fitted separately. `fitted` if
  /// neither is clearly better, or if there are fewer than three groups; then the law of the usual
  /// algorithms holds.
  GrowthLaw law = GrowthLaw::fitted;

  [[nodiscard]] int node_members() const {  ///< largest number of members on one node
    return (members + nodes - 1) / std::max(nodes, 1);
  }
};

/// The measurements of a machine. They take precedence over its data sheet.
struct Measured {
  std::vector<TimedGemm> gemms{};
  std::vector<TimedLocal> locals{};
  std::vector<TimedCommunication> communication{};
  /// The way in which data is assumed to move if the measured groups do not show it. It should not
  /// be `parts` if the library may move whole messages too.
  Moved untold = Moved::parts;
  [[nodiscard]] bool empty() const {
    return gemms.empty() && locals.empty() && communication.empty();
  }
};

/// The factors by which ops slow down during overlap: compute ops while communication runs beside
/// them, and communication while compute ops run; 1 = no slowdown.
struct Overlap {
  double compute = 1, communication = 1;
  bool operator==(const Overlap&) const = default;
};

/// The variation of times from step to step and from rank to rank, relative to their mean.
struct Noise {
  double op = 0;    ///< standard deviation of the time of one compute op
  double rank = 0;  ///< standard deviation of a rank's compute in one step, around its node's
  double node = 0;  ///< standard deviation of a node's compute in one step, common to its ranks
  /// Measured deviations of a rank's compute in one step, ascending, around 0; empty = normally
  /// distributed with standard deviation `rank`.
  std::vector<double> draws{};
  /// Measured factors on the compute time of ranks, around 1, which stay the same in every step;
  /// empty = none.
  std::vector<double> standing{};
  double launch = 0;  ///< standard deviation of a step time from launch to launch
  [[nodiscard]] bool any() const {
    return op > 0 || rank > 0 || node > 0 || !draws.empty() || !standing.empty();
  }
};

/// The value of a kind of op.
struct OfKind {
  program::OpKind kind = program::OpKind::copy;
  double value = 0;
  bool operator==(const OfKind&) const = default;
};

/// The kernels and the host code of training software, which add to the machine's own times.
struct Software {
  std::string name{}, source{};  ///< "NeMo, 2025"; the source of its numbers
  /// The attention kernel, one of the processor's; empty = the products and the softmax are
  /// separate ops.
  std::string attention{};
  /// The bytes that the software moves for a kind of op, divided by the bytes of the op's operands;
  /// above 1 if it also runs kernels that are not in the program, such as dropout with its mask.
  /// Kinds without an entry move the bytes of their operands.
  std::vector<OfKind> traffic{};
  /// If a GEMM adds to its result in place, some software multiplies first and adds in a separate
  /// op. The value is the bytes that this op moves, divided by the bytes of reading and writing the
  /// result once; 0 = the GEMM does the addition itself.
  double accumulate = 0;
  /// The bytes that the loss moves for each logit, forward and backward; programs have the
  /// projection to the vocabulary, but no loss.
  double logit_bytes = 0;
  /// Seconds in which the host launches the kernels of an op, of kinds without their own entry and
  /// of the others. The host runs ahead of the device inside a pass of a microbatch, so a pass
  /// takes the longer of both times.
  double host_op = 0;
  std::vector<OfKind> host{};
  double host_step = 0;  ///< seconds of a step in which the device waits for the host
  /// Options of workloads that training by it has unless the user sets them, by key.
  std::vector<std::pair<std::string, std::string>> options{};
  double spread = 0;   ///< relative standard deviation of the error of predictions
  int most_ranks = 0;  ///< ranks of the largest job whose published time supports the profile
};

struct Machine {
  std::string name, source;  ///< "H100 SXM, NDR"; the source of its numbers
  double spread = 0;         ///< what a data sheet adds to the spread of its software, likewise
  /// True if ranks play all streams as a single one, in program order, so that nothing overlaps.
  bool folded = false;
  std::optional<Processor> processor{};
  std::optional<DeviceMemory> memory{};
  std::optional<Network> network{};
  std::optional<Link> host{};  ///< from each rank to host memory
  Software software{};
  Measured measured{};
  Overlap overlap{};
  Noise noise{};
};

}  // namespace isoscale::simulate
