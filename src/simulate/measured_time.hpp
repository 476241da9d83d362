// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "program/op.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

/// Gives times from measurements for ops that need not have been measured themselves. A time is
/// absent if the measurements say nothing about its kind: another element type, or a link that no
/// measured group used.
namespace isoscale::simulate {

/// The relation of a time to the measurements that it comes from.
enum class Basis : std::uint8_t {
  measured,      ///< this very op was measured
  interpolated,  ///< between or beside measured ops of its kind
  extrapolated,  ///< beyond measured ops: a larger group, or more bytes
  derived,       ///< from another kind, for example reduce_scatter from all_gather
};

struct MeasuredTime {
  double seconds = 0;
  Basis basis = Basis::measured;
};

/// Returns the time of a GEMM. A shape that was measured several times has their mean rate; other
/// shapes have the rate of the nearest of their type and mode, by distance in (log FLOP, log
/// smallest extent). Several rates are averaged in logs, weighted by the inverse square of the
/// distance.
[[nodiscard]] std::optional<MeasuredTime> measured_gemm(const Measured& measured,
                                                        const program::Gemm& gemm,
                                                        program::DType type);

/// Returns the time of an op of `kind` that moves `bytes` of device memory. It is straight between
/// the logarithms of measured sizes and in proportion to bytes beyond them. A kind that was not
/// measured takes the time per byte of the others of the nearest size.
[[nodiscard]] std::optional<MeasuredTime> measured_local(const Measured& measured,
                                                         program::OpKind kind, double bytes);

/// Returns the time of a collective of `bytes` (as OutlineOp::bytes counts them), from the arrival
/// of the last member. Groups on one node and groups across nodes are treated separately. A
/// measured group takes the time of its curve. For other groups the time has two parts. One is the
/// wire's time: bytes times the factor of busbw, over the busbw of the largest measured group. The
/// other is the excess of each measured group at this size, extended by a fitted law over members
/// (on one node) or nodes (across nodes): a + b log2 n or a + b n. It is fitted size by size, since
/// protocols and pipelining make the cost of one more member depend on the message. If the groups
/// do not show which law holds, it is that of the usual algorithms: n for all_gather,
/// reduce_scatter and all_to_all, log2 n for the rest. If more groups share the ports of a node
/// than in the measurement, the time is that of as many times the bytes.
[[nodiscard]] std::optional<MeasuredTime> measured_collective(const Measured& measured,
                                                              program::OpKind kind, double bytes,
                                                              const GroupPlace& place);

/// Returns the time of a message, from the kind exchange of `communication`.
[[nodiscard]] std::optional<MeasuredTime> measured_message(const Measured& measured, double bytes,
                                                           const GroupPlace& place);

/// These return only the seconds of the functions above.
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

/// Sets the law of each kind and link whose measured groups show it by themselves: at least three
/// sizes of groups, over which one law's errors are clearly smaller than the other's.
void settle_laws(Measured& measured);

/// Returns the seconds that a curve gives for `bytes`: between its samples by its scale, above them
/// at its bandwidth, below them towards its latency.
[[nodiscard]] double curve_seconds(const TimedCommunication& curve, double bytes);

// Derives the time of a collective in a group that was not measured from those that were.

/// Groups of one kind that differ only in their size.
struct GroupFamily {
  struct Group {
    double size = 0;                            ///< members if on one node, otherwise nodes
    const TimedCommunication* curve = nullptr;  ///< not owned
  };
  std::vector<Group> groups;  ///< ascending in size, at least one
  /// The curve of the members that these groups have on one node, if it was measured: it is the
  /// time of a group that lies on one node only. Null otherwise, and for groups on one node. Not
  /// owned.
  const TimedCommunication* on_one_node = nullptr;
};

/// Finds the measured groups of `kind` that have links like the place's: on one node, or across
/// nodes; of the latter those with as many members on a node, if there are any. The family is empty
/// if there are no such groups.
[[nodiscard]] GroupFamily family_of(const Measured& measured, program::OpKind kind,
                                    const GroupPlace& place);

/// Returns busbw over algbw (nccl-tests, doc/PERFORMANCE.md): 2 (n-1) / n for all_reduce, (n-1) / n
/// for collectives of parts, else 1.
[[nodiscard]] double wire_factor(program::OpKind kind, double members);

/// The growth of a family's time. The time beyond the wire's grows by `law`, logarithmic or
/// proportional; the bytes move as the family's groups show, or as `untold` if they do not show it.
struct Growth {
  GrowthLaw law = GrowthLaw::logarithmic;
  Moved untold = Moved::parts;
};

/// Returns the seconds among `members` for a group of `size`, as the family counts size.
[[nodiscard]] double grown_seconds(const GroupFamily& family, const Growth& growth, double size,
                                   double members, double bytes);

}  // namespace isoscale::simulate
