// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/op.hpp"
#include "program/outline.hpp"

/// Describes the performance of a machine by numbers from a data sheet or from measurements, as
/// input of simulations. The units are SI: seconds, bytes, bytes/s, FLOP/s.
namespace isoscale::simulate {

/// An entry of a list that gives the share of a peak rate that work of some size reaches. Lists
/// ascend in size. Between two entries the share is interpolated linearly over the logarithm of
/// size; below the first and above the last entry it is constant.
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

/// The rate of dense matrix multiplication with one element type.
struct MatrixRate {
  program::DType type = program::DType::bf16;
  program::ComputeMode mode = program::ComputeMode::native;
  double peak = 0;                      ///< FLOP/s
  std::vector<ReachedShare> reached{};  ///< share of the peak, by FLOP of one GEMM
};

/// A fused kernel of causal attention (such as FlashAttention), which never writes the scores to
/// memory. It computes only the half below the diagonal of each matrix product. There are 2
/// products forward, and 5 backward, since the backward pass computes the scores again. `forward`
/// and `backward` are the shares of the peak FLOP/s that the kernel reaches, where only the FLOP of
/// these halves are counted.
struct AttentionKernel {
  std::string name;
  double forward = 1, backward = 1;
};

/// The processor of one rank (such as a GPU), as its data sheet describes it. For a machine that a
/// run measured, only `launch` is known.
struct Processor {
  std::vector<MatrixRate> matrix{};
  int units = 0;                        ///< multiprocessors that compute tiles; 0 = unknown
  int tile_rows = 0, tile_columns = 0;  ///< size of a tile of the output; 0 = unknown
  /// The start and the end of a tile take as long as this number of steps along k.
  double tile_depth = 0;
  std::vector<AttentionKernel> attention{};
  double launch = 0;  ///< seconds from the end of an op to the start of the next one
  double power = 0;   ///< power limit, in watts, with which GEMMs reach their rates; 0 = unknown
};

struct DeviceMemory {
  double capacity = 0;                  ///< bytes that a program may use
  double bandwidth = 0;                 ///< bytes/s, read + written
  std::vector<ReachedShare> reached{};  ///< share of the bandwidth, by bytes of one op
};

/// A link of a rank or of a network port, in one direction.
struct Link {
  double bandwidth = 0;  ///< bytes/s of the wire
  double reached = 1;    ///< share of `bandwidth` that large messages get
  double latency = 0;    ///< seconds of one hop
  /// Bytes that a rank receives in a collective before it passes them on; 0 = it passes every byte
  /// on at once. The value is a sum over all channels of a rank's link inside a node, or of one
  /// port between nodes.
  double chunk = 0;
};

/// A level of switches above those to which nodes are connected, such as spine switches.
struct Tier {
  int nodes = 1;       ///< nodes in each of the parts of the network that it connects
  double share = 1;    ///< bandwidth up to it divided by bandwidth down: 1 / oversubscription
  double latency = 0;  ///< seconds of one hop through it
};

/// A way in which a library sends the data of a collective, such as NCCL's LL, LL128 and Simple.
/// Protocols that send flags along with the data have lower latency and less bandwidth.
struct Protocol {
  std::string name;
  double hop_inside = 1, hop_across = 1;  ///< factors on the latency of a link
  double share = 1;                       ///< factor on the bandwidth of large messages
  double most = 0;                        ///< upper limit of the bandwidth, bytes/s; 0 = no limit
  double most_across = 0;                 ///< the limit for groups over several nodes; 0 = `most`
  double most_two = 0;                    ///< the limit for two nodes; 0 = as for more nodes
};

/// The algorithms of collectives. multicast: NVLS, in which the switch inside a node reduces and
/// multicasts, with trees between nodes (NVLS tree). hierarchical: a reduce-scatter inside nodes,
/// trees between nodes for each part, an all-gather inside nodes. pat: NCCL's parallel aggregated
/// trees. collnet: NCCL's CollNet, in which the switches between nodes reduce and copy (SHARP).
enum class Algorithm : std::uint8_t { ring, tree, multicast, hierarchical, pat, collnet };
inline constexpr std::array<std::string_view, 6> algorithm_names{
    "ring", "tree", "multicast", "hierarchical", "pat", "collnet"};
[[nodiscard]] constexpr std::string_view name(Algorithm algorithm) {
  return algorithm_names[static_cast<std::size_t>(algorithm)];
}

/// The rates of an algorithm with which switches reduce: `multicast` (inside nodes) or `collnet`
/// (between nodes).
struct SwitchReduction {
  /// multicast: the share of the bandwidth of Network::inside that is reached when each of the n
  /// ranks of a node moves S (1 + 1/n) bytes for an all-reduce of S bytes. collnet: the share of
  /// the rate of large messages between nodes. The sizes in this list are S / n.
  std::vector<ReachedShare> reached{};
  /// Seconds that a collective takes in addition to the time for moving its bytes. multicast: only
  /// those inside a node. collnet: all except those of the levels of switches (across_latency).
  double latency = 0;
  /// multicast: seconds of one step of the tree between nodes. collnet: seconds of one level of
  /// switches, up and down.
  double across_latency = 0;
  int most_nodes = 0;  ///< largest number of nodes that can use this algorithm; 0 = no limit
};

struct Network {
  int node_ranks = 1;         ///< ranks connected by `inside`: a node, or a rack with one switch
  Link inside{};              ///< link of a rank to the others of its node
  Link across{};              ///< link of one network port to other nodes
  std::vector<Tier> tiers{};  ///< ascending in nodes; empty = one level of switches
  double ports_per_rank = 1;  ///< network ports of a node divided by its ranks
  std::optional<SwitchReduction> multicast{};  ///< present if switches inside nodes can reduce
  std::optional<SwitchReduction> collnet{};    ///< present if switches between nodes can reduce
  /// Seconds to start a message or a collective, except with the algorithms multicast and collnet.
  double start = 0;
  /// The share of the bandwidth of `inside` that a large message reaches; if it is 0,
  /// inside.reached is used.
  double message_reached = 0;
  double tree_most = 0;  ///< largest bytes/s of a tree over more than two nodes; 0 = no limit
  std::vector<Algorithm> algorithms{Algorithm::ring, Algorithm::tree};
  /// At least one; by default a protocol with the latency and bandwidth of the links. The last
  /// protocol in the list is also that of point-to-point messages.
  std::vector<Protocol> protocols{Protocol{}};
};

/// Returns the extents of a GEMM.
[[nodiscard]] inline program::GemmShape shape_of(const program::Gemm& gemm) {
  return {.m = gemm.m, .n = gemm.n, .k = gemm.k, .batch = gemm.batch};
}
/// Returns the FLOP of a GEMM.
[[nodiscard]] inline double flop_of(const program::GemmShape& shape) {
  return 2.0 * shape.m * shape.n * shape.k * shape.batch;
}

struct TimedGemm {
  program::DType type = program::DType::f32;
  program::ComputeMode mode = program::ComputeMode::native;
  program::GemmShape shape{};
  double seconds = 0;
  [[nodiscard]] double rate() const { return flop_of(shape) / seconds; }  ///< FLOP/s
};

/// The measured time of an op that neither multiplies matrices nor communicates.
struct TimedLocal {
  program::OpKind kind = program::OpKind::copy;
  double bytes = 0, seconds = 0;
};

struct SizeSeconds {
  double bytes = 0, seconds = 0;
};

/// The law by which the time of communication, without the time for moving bytes, grows with the
/// size of its group. It is used for groups of a size that was not measured. logarithmic: with the
/// logarithm of the size, as in trees. proportional: in proportion to the size, as in rings.
/// fitted: the measurements do not show which; measured_collective_seconds() (op_time.hpp) says
/// which law is then used.
enum class GrowthLaw : std::uint8_t { fitted, logarithmic, proportional };

/// The way in which a collective moves data between ranks. parts: ranks send parts of a message, as
/// in rings and recursive halving. whole: ranks send whole messages from level to level of a tree
/// (Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005) 49). whole_at_once: each rank of a tree sends
/// whole messages to all ranks below it at once, so that these transfers share the rank's link.
enum class Moved : std::uint8_t { parts, whole, whole_at_once };

/// The interpolation of a measured curve between its sizes: linear in log(time) over log(size), or
/// in time over size.
enum class Straight : std::uint8_t { in_logs, in_bytes };

/// The measured times of one kind of communication by message size, in groups with equal numbers of
/// members and nodes.
struct TimedCommunication {
  program::OpKind kind = program::OpKind::all_reduce;
  int members = 0, nodes = 0;
  int sharing = 1;                     ///< largest number of groups that ran at once on one node
  std::vector<SizeSeconds> samples{};  ///< ascending in bytes
  std::optional<double> latency{};     ///< seconds
  std::optional<double> bandwidth{};   ///< bytes/s (algbw) that very large messages approach
  Straight between = Straight::in_logs;
  /// Set by settle_laws() (op_time.hpp), separately for groups on one node and over several nodes.
  GrowthLaw law = GrowthLaw::fitted;

  [[nodiscard]] int node_members() const {  ///< largest number of members on one node
    return (members + nodes - 1) / std::max(nodes, 1);
  }
};

/// The measured times of a machine. They are used in preference to its data sheet.
struct Measured {
  std::vector<TimedGemm> gemms{};
  /// FLOP/s of the fastest multiplication that a micro-benchmark measured, by program::name() of
  /// the precision. MFU is computed relative to this rate.
  std::map<std::string, double, std::less<>> gemm_ceilings{};
  std::vector<TimedLocal> locals{};
  std::vector<TimedCommunication> communication{};
  /// The way in which data is assumed to move if the measured times do not show it: `parts` for a
  /// library that splits every message (NCCL), another way if it may move whole messages (MPI).
  Moved untold = Moved::parts;
  [[nodiscard]] bool empty() const {
    return gemms.empty() && locals.empty() && communication.empty();
  }
};

/// The factors by which ops take longer during overlap: `compute` for compute ops while
/// communication runs, `communication` for communication while compute ops run; 1 = no slowdown.
struct Overlap {
  double compute = 1, communication = 1;
  bool operator==(const Overlap&) const = default;
};

/// The variation of times from step to step and from rank to rank. All values are relative to the
/// mean time.
struct Noise {
  double op = 0;    ///< standard deviation of the time of one compute op
  double rank = 0;  ///< standard deviation of a rank's compute in a step from its node's mean
  double node = 0;  ///< standard deviation of the compute of all ranks of a node together in a step
  /// Deviations of a rank's compute in one step from its mean, ascending: measured ones, or those
  /// of straggling_draws(). Empty = they are normally distributed with standard deviation `rank`.
  std::vector<double> draws{};
  /// Measured factors on the compute times of ranks, which are near 1 and constant over steps;
  /// empty = none.
  std::vector<double> standing{};
  double launch = 0;  ///< standard deviation of a step time from launch to launch
  [[nodiscard]] bool any() const {
    return op > 0 || rank > 0 || node > 0 || !draws.empty() || !standing.empty();
  }
};

/// A value for one kind of op.
struct OfKind {
  program::OpKind kind = program::OpKind::copy;
  double value = 0;
  bool operator==(const OfKind&) const = default;
};

/// Numbers on training software: the times of its kernels and host code that add to the machine's
/// own times.
struct Software {
  std::string name{}, source{};  ///< "NeMo, 2025"; where its numbers are from
  /// The name of one of the processor's attention kernels, which the software uses; empty = matrix
  /// products and softmax are separate ops.
  std::string attention{};
  /// For a kind of op: the bytes that the software moves, divided by the bytes of the op's
  /// operands. It is above 1 if the software also runs kernels that are not in the program, such as
  /// dropout with its mask. For kinds without an entry it is 1.
  std::vector<OfKind> traffic{};
  /// If a GEMM of the program adds to its result in place, some software writes the product and
  /// adds it in a separate op. The value is the bytes that this op moves, divided by the bytes of
  /// reading and writing the result once; 0 = the GEMM does the addition itself.
  double accumulate = 0;
  /// The bytes that the loss moves for each logit, forward and backward together. Programs have the
  /// projection to the vocabulary, but no loss, so it is added here.
  double logit_bytes = 0;
  /// Seconds that the host needs to launch the kernels of one op: `host` by kind of op, `host_op`
  /// for all other kinds. The host launches an op while the device executes the one before it, so
  /// an op takes at least as long as the host needs for the next one.
  double host_op = 0;
  std::vector<OfKind> host{};
  /// Seconds of host work for each gather or reduction of a bucket of sharded states in the pass of
  /// a microbatch, for example in hooks, and in copies into the bucket and out of it.
  double host_bucket = 0;
  double host_step = 0;  ///< seconds of a step in which the device only waits for the host
  /// Options of workloads, key and value, that this software uses unless the user sets them.
  std::vector<std::pair<std::string, std::string>> options{};
  /// The relative standard deviation of the error of predictions with this software; 0 = unknown,
  /// because no prediction was compared with a measured step.
  double spread = 0;
  int most_ranks = 0;  ///< ranks of the largest job whose published time was used for these numbers
};

struct Machine {
  std::string name, source;  ///< "H100 SXM, NDR"; where its numbers are from
  double spread = 0;         ///< relative standard deviation of predictions from its data sheet
  /// True if each rank runs all its streams on one thread, in program order, so that nothing
  /// overlaps.
  bool folded = false;
  std::optional<Processor> processor{};
  std::optional<DeviceMemory> memory{};
  std::optional<Network> network{};
  std::optional<Link> host{};  ///< between each rank and host memory
  Software software{};
  Measured measured{};
  Overlap overlap{};
  Noise noise{};
};

}  // namespace isoscale::simulate
