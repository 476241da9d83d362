// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "program/op.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

/// Derives the times of ops in seconds from measurements, which need not contain these ops
/// themselves. A time is absent if nothing comparable was measured: no op with this element type,
/// or no group over this kind of link.
namespace isoscale::simulate {

/// Returns the time of a GEMM: the measured one if its shape was measured. Other shapes get the
/// mean rate of the nearest four shapes of the same type and mode, by distance in the plane (log
/// FLOP, log smallest extent). The mean is taken of the logarithms of the rates, weighted by the
/// inverse square of the distance.
[[nodiscard]] std::optional<double> measured_gemm_seconds(const Measured& measured,
                                                          const program::Gemm& gemm,
                                                          program::DType type);

/// Returns the time of an op of `kind` that moves `bytes` of device memory. Between measured sizes,
/// log time is interpolated over log size; beyond them, time is in proportion to bytes. A kind that
/// was not measured gets the time per byte of the op of any kind with the nearest size.
[[nodiscard]] std::optional<double> measured_local_seconds(const Measured& measured,
                                                           program::OpKind kind, double bytes);

/// Returns the time of a collective of `bytes` (as OutlineOp::bytes counts them), from the arrival
/// of the last member. Groups on one node and groups across nodes are treated separately.
/// - A measured group takes the time of its curve.
/// - Another group of n (members on one node, or nodes) takes the wire's time and an excess. The
///   wire's time is bytes x f / b: each byte passes a wire f times (see Moved), and b is the
///   bandwidth of a wire in the largest measured group. The excess at each message size is
///   interpolated between the measured groups, linearly in log2 n or in n; beyond the largest group
///   it follows the fitted slope of a + b log2 n or a + b n. It is found size by size, since
///   protocols and pipelining make the cost of one more member depend on the message.
/// - If the groups do not show which law holds, a + b n is used for all_gather, reduce_scatter and
///   all_to_all, and a + b log2 n for the rest, as for the usual algorithms.
/// - If f times as many groups as in the measurement share a node's ports, the time is that of f
///   times the bytes.
/// - If the kind was not measured, its time is derived from kinds that move the same bytes.
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

/// Returns the seconds that a curve gives for `bytes`. It interpolates between samples as
/// `between` says. Above the largest sample, further bytes take the time that the curve's bandwidth
/// gives; below the smallest, time falls at this rate, but not below the latency.
[[nodiscard]] double curve_seconds(const TimedCommunication& curve, double bytes);

// The following functions derive the time of a collective in a group that was not measured from the
// times of measured groups.

/// Measured groups of one kind that differ only in their size.
struct GroupFamily {
  struct Group {
    double size = 0;                            ///< members if on one node, otherwise nodes
    const TimedCommunication* curve = nullptr;  ///< not owned
  };
  std::vector<Group> groups;  ///< ascending in size, at least one
  /// The curve of the group that the members on one node form, if the family's groups lie across
  /// nodes. Null if that curve was not measured, and for groups on one node. Not owned.
  const TimedCommunication* on_one_node = nullptr;
};

/// Returns the measured groups of `kind` that, like `place`, lie on one node or across nodes. If
/// `place` lies across nodes and some of the groups have as many members on a node as `place`, only
/// these are returned. The family may be empty.
[[nodiscard]] GroupFamily family_of(const Measured& measured, program::OpKind kind,
                                    const GroupPlace& place);

/// Returns busbw over algbw (nccl-tests, doc/PERFORMANCE.md): 2 (n-1) / n for all_reduce, (n-1) / n
/// for collectives in which ranks send or receive parts of the data, else 1.
[[nodiscard]] double wire_factor(program::OpKind kind, double members);

/// The rules by which the time of a family grows with the size of the group. The time beyond the
/// wire's grows by `law`, logarithmic or proportional. Data moves in the way that the family's
/// groups show, or in the way `untold` if they do not show one.
struct Growth {
  GrowthLaw law = GrowthLaw::logarithmic;
  Moved untold = Moved::parts;
};

/// Returns the seconds of a collective of `bytes` in a group of `members` ranks that is not in the
/// family; `size` is the number of members if the group is on one node, else the number of nodes.
[[nodiscard]] double grown_seconds(const GroupFamily& family, const Growth& growth, double size,
                                   double members, double bytes);

}  // namespace isoscale::simulate
