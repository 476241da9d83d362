// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/op.hpp"

/// A machine's abilities as numbers, from a data sheet or from measurements. Cost models read them.
/// SI units: seconds, bytes, bytes/s, FLOP/s.
namespace isoscale::simulate {

/// The share of a peak that work of some size reaches. A list of them is ascending in size; between
/// entries the share is straight over the logarithm of size, beyond them it is that of the nearest
/// entry.
struct ReachedShare {
  double size = 0, share = 0;
  bool operator==(const ReachedShare&) const = default;
};

/// Returns the share that work of `size` reaches; 1 without a list.
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

/// Dense matrix multiplication in one element type.
struct MatrixRate {
  program::DType type = program::DType::bf16;
  program::ComputeMode mode = program::ComputeMode::native;
  double peak = 0;                      ///< FLOP/s
  std::vector<ReachedShare> reached{};  ///< by FLOP of one GEMM
  bool operator==(const MatrixRate&) const = default;
};

/// The rank's processor, as its data sheet describes it.
struct Processor {
  std::vector<MatrixRate> matrix{};
  int units = 0;                        ///< multiprocessors that run tiles; 0 = not known
  int tile_rows = 0, tile_columns = 0;  ///< of a GEMM's output; 0 = not known
  double tile_depth = 0;                ///< extra depth in k that the start and end of a tile cost
  /// The share of the peak that one fused kernel for all of attention reaches (FlashAttention), by
  /// the FLOP of the whole products although a causal mask leaves half of them out. The scores are
  /// never written to memory. 0 = the products and the softmax are ops of their own.
  double fused_attention = 0;
  double launch = 0;  ///< seconds from the end of an op to the start of the next
  bool operator==(const Processor&) const = default;
};

/// The bytes that a machine's software moves for an op, over those of the op's operands: software
/// has kernels of its own that a program does not show, for example dropout with its mask.
struct Traffic {
  program::OpKind kind = program::OpKind::copy;
  double times = 1;
  bool operator==(const Traffic&) const = default;
};

struct DeviceMemory {
  double capacity = 0;                  ///< bytes that a program may use
  double bandwidth = 0;                 ///< bytes/s, read + written
  std::vector<ReachedShare> reached{};  ///< by bytes of one op
  std::vector<Traffic> traffic{};       ///< kinds without an entry move their operands
  /// If a GEMM adds to a sum in place, the software may do the addition after it as an op of its
  /// own. This is the share, of the bytes of the sum that are read and written, that this op moves;
  /// 0 = the GEMM does the addition itself.
  double accumulate = 0;
  bool operator==(const DeviceMemory&) const = default;
};

/// The link from one rank to others, in one direction.
struct Link {
  double bandwidth = 0;  ///< bytes/s of the wire
  double reached = 1;    ///< share of it that large messages get
  double latency = 0;    ///< seconds of one hop
  bool operator==(const Link&) const = default;
};

/// The way in which a library carries the bytes of a collective: flags sent beside the data lower
/// the latency and cost bandwidth.
struct Protocol {
  std::string name;
  double hop_inside = 1, hop_across = 1;  ///< times the latency of a link
  double share = 1;                       ///< of the bandwidth of large messages
  double most = 0;                        ///< bytes/s of the wire, at most; 0 = no limit
  bool operator==(const Protocol&) const = default;
};

/// multicast: the inner switch reduces and multicasts (NVLS), with trees between nodes (NVLS tree).
/// hierarchical: reduce-scatter inside nodes, trees for each part across them, all-gather inside.
enum class Algorithm : std::uint8_t { ring, tree, multicast, hierarchical };

/// The share of the bandwidth of large messages that a collective gets, by the bytes of one
/// member's part (the whole over the members): a pipeline of chunks takes time to fill.
struct PartShare {
  program::OpKind kind = program::OpKind::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  std::vector<ReachedShare> reached{};
  bool operator==(const PartShare&) const = default;
};

/// The rates of all-reduces in which the inner switch takes part.
struct Multicast {
  double reached = 1;         ///< share of the inner link's bandwidth, of S (1 + 1/n) bytes
  double latency = 0;         ///< seconds of one operation inside
  double across_latency = 0;  ///< seconds of a step of the tree between nodes
  bool operator==(const Multicast&) const = default;
};

struct Network {
  int node_ranks = 1;          ///< ranks joined by `inside`: a node, or a rack with one switch
  Link inside{};               ///< per rank
  Link across{};               ///< per network port
  double ports_per_rank = 1;   ///< network ports of a node over its ranks
  bool multicast = false;      ///< the inner switch reduces and multicasts (NVLS)
  Multicast multicast_rate{};  ///< used if `multicast`
  double start = 0;            ///< seconds that any collective or message takes at least
  double message_reached = 0;  ///< share of `inside` that one large message gets; 0 = as others
  std::vector<Algorithm> algorithms{Algorithm::ring, Algorithm::tree};
  std::vector<Protocol> protocols{};  ///< empty = one, with the links' latency and bandwidth
  std::vector<PartShare> parts{};
  bool operator==(const Network&) const = default;
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

/// The law by which communication slows with the size of its group, for sizes that were not
/// measured: with the logarithm of the size (trees), in proportion to it (rings), or as the
/// measured groups show.
enum class GrowthLaw : std::uint8_t { fitted, logarithmic, proportional };

/// The data that goes over a wire as a group grows: parts of a message, as in rings and halvings;
/// whole messages from level to level of a tree (Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005)
/// 49); or whole messages that a rank of the tree sends to all ranks below it at once, so that each
/// gets a smaller share of its wire the more there are.
enum class Moved : std::uint8_t { parts, whole, whole_at_once };

/// The scale on which a curve is straight between its sizes: log time over log size, or time over
/// size.
enum class Straight : std::uint8_t { in_logs, in_bytes };

/// Measured time against size of one kind of communication in groups of one shape.
struct TimedCommunication {
  program::OpKind kind = program::OpKind::all_reduce;
  int members = 0, nodes = 0;
  int sharing = 1;                     ///< groups on one node that ran at once, at most
  std::vector<SizeSeconds> samples{};  ///< ascending in bytes
  std::optional<double> latency{},
      bandwidth{};   ///< seconds, bytes/s of algbw towards infinite size
  double error = 0;  ///< relative error of a time between its sizes
  Straight between = Straight::in_logs;
  /// The law that the groups of its kind and link show by themselves; `fitted` if they do not.
  GrowthLaw law = GrowthLaw::fitted;
};

/// The measurements of a machine, which take precedence over its data sheet.
struct Measured {
  std::vector<TimedGemm> gemms{};
  std::vector<TimedLocal> locals{};
  std::vector<TimedCommunication> communication{};
  GrowthLaw growth = GrowthLaw::fitted;  ///< for all kinds, unless fitted
  /// The movement that is assumed for families whose groups do not show it. It is not `parts` where
  /// the library may do either.
  Moved untold = Moved::parts;
  [[nodiscard]] bool empty() const {
    return gemms.empty() && locals.empty() && communication.empty();
  }
};

/// The factor by which ops take longer while the other kind runs beside them; 1 = no longer.
struct Overlap {
  double compute = 1, communication = 1;
  bool operator==(const Overlap&) const = default;
};

/// The variation of times from play to play and from rank to rank, relative to their mean.
struct Noise {
  double op = 0;    ///< standard deviation of each single compute op
  double rank = 0;  ///< of a rank's compute in one step, around its node's
  double node = 0;  ///< of a node's compute in one step, shared by its ranks
  /// Measured deviations of a rank's compute in one step, ascending, around 0; empty = normal.
  std::vector<double> draws{};
  /// Measured constant factors of ranks around 1, which are the same in every step; empty = none.
  std::vector<double> standing{};
  double launch = 0;  ///< standard deviation of a step time from launch to launch
  [[nodiscard]] bool any() const {
    return op > 0 || rank > 0 || node > 0 || !draws.empty() || !standing.empty();
  }
};

struct Machine {
  std::string name, source;  ///< "H100 SXM, NDR"; the source of its numbers
  /// True if ranks play all streams as one, in program order: nothing overlaps.
  bool folded = false;
  std::optional<Processor> processor{};
  std::optional<DeviceMemory> memory{};
  std::optional<Network> network{};
  std::optional<Link> host{};  ///< from each rank to host memory
  Measured measured{};
  Overlap overlap{};
  Noise noise{};
};

}  // namespace isoscale::simulate
