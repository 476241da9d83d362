// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "program/op.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

/// Derives the times of ops in seconds from measurements, which need not contain these ops
/// themselves. A time is absent if the measurements lack its kind: another element type, or a link
/// that no measured group used.
namespace isoscale::simulate {

/// Returns the time of a GEMM: the measured one if its shape was measured. Other shapes get the
/// mean rate of the nearest four shapes of the same type and mode, by distance in (log FLOP, log
/// smallest extent); the mean is taken in logs, weighted by the inverse square of the distance.
[[nodiscard]] std::optional<double> measured_gemm_seconds(const Measured& measured,
                                                          const program::Gemm& gemm,
                                                          program::DType type);

/// Returns the time of an op of `kind` that moves `bytes` of device memory. Between measured sizes,
/// log time is interpolated over log size; beyond them, time is in proportion to bytes. A kind that
/// was not measured gets the time per byte of the op of any kind with the nearest size.
[[nodiscard]] std::optional<double> measured_local_seconds(const Measured& measured,
                                                           program::OpKind kind, double bytes);

/// Returns the time of a collective of `bytes` (as OutlineOp::bytes counts them), from the arrival
/// of the last member. Groups on one node and groups across nodes are treated separately. A
/// measured group takes the time of its curve. For other groups the time has two parts. One is the
/// wire's time: bytes times the factor of busbw, over the busbw of the largest measured group. The
/// other is the excess of each measured group at this size, extended by a fitted law over members
/// (on one node) or nodes (across nodes): a + b log2 n or a + b n. It is fitted size by size, since
/// protocols and pipelining make the cost of one more member depend on the message. If the groups
/// do not show which law holds, it is that of the usual algorithms: a + b n for all_gather,
/// reduce_scatter and all_to_all, a + b log2 n for the rest. If the ports of a node are shared by f
/// times as many groups as in the measurement, the time is that of f times the bytes. If the kind
/// was not measured, its time is derived from kinds that move the same bytes.
[[nodiscard]] std::optional<double> measured_collective_seconds(const Measured& measured,
                                                                program::OpKind kind, double bytes,
                                                                const GroupPlace& place);

/// Returns the time of a message, from measurements of the kind exchange.
[[nodiscard]] std::optional<double> measured_message_seconds(const Measured& measured, double bytes,
                                                             const GroupPlace& place);

/// Sets TimedCommunication::law of every curve. A law is set if its errors over the curve's family
/// (see family_of) are clearly smaller than the other law's, and if the family has at least three
/// sizes; else `fitted` is set.
void settle_laws(Measured& measured);

/// Returns the seconds that a curve gives for `bytes`: between its samples on the axes where it is
/// straight, above them by its bandwidth, below them towards its latency.
[[nodiscard]] double curve_seconds(const TimedCommunication& curve, double bytes);

// The following derives the time of a collective in a group that was not measured from measured
// groups.

/// Measured groups of one kind that differ only in their size.
struct GroupFamily {
  struct Group {
    double size = 0;                            ///< members if on one node, otherwise nodes
    const TimedCommunication* curve = nullptr;  ///< not owned
  };
  std::vector<Group> groups;  ///< ascending in size, at least one
  /// For groups across nodes: the curve of a group that has only the members on one node. Null if
  /// it was not measured, and for groups on one node. Not owned.
  const TimedCommunication* on_one_node = nullptr;
};

/// Returns the measured groups of `kind` that, like `place`, lie on one node or across nodes. If
/// some groups across nodes have as many members on a node as `place`, only these are returned. The
/// family is empty if there are no groups.
[[nodiscard]] GroupFamily family_of(const Measured& measured, program::OpKind kind,
                                    const GroupPlace& place);

/// Returns busbw over algbw (nccl-tests, doc/PERFORMANCE.md): 2 (n-1) / n for all_reduce, (n-1) / n
/// for collectives whose ranks hold parts, else 1.
[[nodiscard]] double wire_factor(program::OpKind kind, double members);

/// How the time of a family grows. The time beyond the wire's grows by `law`, logarithmic or
/// proportional; data moves as the family's groups show, or as `untold` if they do not show it.
struct Growth {
  GrowthLaw law = GrowthLaw::logarithmic;
  Moved untold = Moved::parts;
};

/// Returns the seconds of a collective of `bytes` in a group of `members` ranks that is not in the
/// family; `size` is its members if it is on one node, else its nodes.
[[nodiscard]] double grown_seconds(const GroupFamily& family, const Growth& growth, double size,
                                   double members, double bytes);

}  // namespace isoscale::simulate
