// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "program/op.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

/// Measurements are asked here for ops that need not have been measured. Times are absent where the
/// measurements say nothing of the kind: another element type, a link that no measured group had.
namespace isoscale::simulate {

/// The distance of a time from a measurement.
enum class Basis : std::uint8_t {
  measured,      ///< this very op
  interpolated,  ///< between or beside ops of its kind
  extrapolated,  ///< beyond them: a larger group, or more bytes
  derived,       ///< from another kind: reduce_scatter from all_gather, say
};

struct MeasuredTime {
  double seconds = 0;
  Basis basis = Basis::measured;
};

/// A GEMM of one shape as often as it was timed. Other shapes have the rate of the nearest of their
/// type and mode, in (log FLOP, log smallest extent); of several, the mean of log rates weighted by
/// the inverse square of the distance.
[[nodiscard]] std::optional<MeasuredTime> measured_gemm(const Measured& measured,
                                                        const program::Gemm& gemm,
                                                        program::DType type);

/// An op of `kind` that moves `bytes` of device memory: straight between logarithms of measured
/// sizes, beyond them in proportion to bytes. Of a kind that was not measured: as others of the
/// nearest size, byte for byte.
[[nodiscard]] std::optional<MeasuredTime> measured_local(const Measured& measured,
                                                         program::OpKind kind, double bytes);

/// A collective of `bytes` (as OutlineOp::bytes counts them), all members there. Groups on one node
/// and those across nodes are known apart. A group that was measured takes the time of its curve.
/// For others the time is what the wire takes - bytes times the factor of busbw over the busbw of
/// the largest measured group - and what comes on top at this size in each measured group, carried
/// on by a law over members (on one node) or nodes (across) that fits: a + b log2 n or a + b n. It
/// is fitted size by size, since protocols and pipelining make the cost of one more member depend
/// on the message. Where the groups do not tell which it is, it is that of the usual
/// algorithms: n for all_gather, reduce_scatter and all_to_all, log2 n for the rest.
/// Groups that share the ports of a node more than the measured did take as long as so many times
/// the bytes.
[[nodiscard]] std::optional<MeasuredTime> measured_collective(const Measured& measured,
                                                              program::OpKind kind, double bytes,
                                                              const GroupPlace& place);

/// A message, by kind exchange of `communication`.
[[nodiscard]] std::optional<MeasuredTime> measured_message(const Measured& measured, double bytes,
                                                           const GroupPlace& place);

/// Seconds of the above.
[[nodiscard]] std::optional<double> measured_gemm_seconds(const Measured& measured,
                                                          const program::Gemm& gemm,
                                                          program::DType type);
[[nodiscard]] std::optional<double> measured_local_seconds(const Measured& measured,
                                                           program::OpKind kind, double bytes);
[[nodiscard]] std::optional<double> measured_collective_seconds(const Measured& measured,
                                                                program::OpKind kind, double bytes,
                                                                const GroupPlace& place);
[[nodiscard]] std::optional<double> measured_message_seconds(const Measured& measured, double bytes,
                                                             const GroupPlace& place);

/// Sets the law of each kind and link that the measured groups tell by themselves: of at least
/// three sizes of groups, over which one law misses the times by clearly less than the other does.
void settle_laws(Measured& measured);

/// The seconds that a curve gives for `bytes`: between its samples as it says, above at its
/// bandwidth, below towards its latency.
[[nodiscard]] double curve_seconds(const TimedCommunication& curve, double bytes);

// The time of a collective in a group that was not measured follows from those that were.

/// Groups of one kind that are alike in all but their size.
struct GroupFamily {
  struct Group {
    double size = 0;  ///< members on one node; nodes, of groups across several
    const TimedCommunication* curve = nullptr;  ///< not owned
  };
  std::vector<Group> groups;  ///< ascending in size, at least one
  /// The same groups' members on one node alone, where that was measured: what a group across
  /// nodes takes with one. Null otherwise, and on one node. Not owned.
  const TimedCommunication* on_one_node = nullptr;
};

/// Finds among the groups of `kind` that were measured those with links like the place's: on one
/// node, or across, and of the latter those with as many members on a node where there are any.
/// Without groups when there are none.
[[nodiscard]] GroupFamily family_of(const Measured& measured, program::OpKind kind,
                                    const GroupPlace& place);

/// busbw over algbw (nccl-tests, doc/PERFORMANCE.md): all_reduce 2 (n-1) / n, parts (n-1) / n,
/// else 1.
[[nodiscard]] double wire_factor(program::OpKind kind, double members);

/// The growth of a family's time: what is over the bytes by `law`, logarithmic or proportional;
/// bytes as the family's groups show, or as `untold` where they do not.
struct Growth {
  GrowthLaw law = GrowthLaw::logarithmic;
  Moved untold = Moved::parts;
};

/// Seconds among `members` on a group of `size` as the family counts it.
[[nodiscard]] double grown_seconds(const GroupFamily& family, const Growth& growth, double size,
                                   double members, double bytes);

}  // namespace isoscale::simulate
