// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "program/op.hpp"
#include "simulate/machine.hpp"
#include "units/quantity.hpp"

namespace isoscale::program {
struct RankProgram;
}

/// Gives the time of an op on a machine: from measured times if the machine has them, else from its
/// data sheet.
namespace isoscale::simulate {

struct GroupPlace;  // layout.hpp
class Places;

/// Returns the seconds of one GEMM with operands of `type` that moves `bytes` of device memory,
/// Processor::launch included. A data sheet gives the longer of the times for multiplying and for
/// moving bytes, since they overlap. Throws base::UsageError if the machine has neither measured
/// GEMMs nor a rate of this type and the GEMM's mode.
[[nodiscard]] double gemm_seconds(const Machine& machine, const program::Gemm& gemm,
                                  program::DType type, double bytes);
/// Returns the seconds of an op that neither multiplies matrices nor communicates,
/// Processor::launch included. `bytes` are those of its operands, by which measured times are
/// found. `moved` are the bytes that it reads and writes; multiplied by Software::traffic, they are
/// divided by a data sheet's bandwidth. Throws base::UsageError if the machine has neither measured
/// times of such ops nor a bandwidth.
[[nodiscard]] double local_seconds(const Machine& machine, program::OpKind kind, double bytes,
                                   double moved);
/// Returns the seconds of a collective, from the arrival of the last member. `bytes` is the size of
/// the whole group's data for all_gather, gather and scatter, and for other kinds the size of the
/// larger buffer (send or receive) of one rank. Throws base::UsageError if neither measured times
/// nor a network are known for the group.
[[nodiscard]] double collective_seconds(const Machine& machine, program::OpKind kind, double bytes,
                                        const GroupPlace& place);
/// Returns the seconds of one message between two ranks. Throws as collective_seconds() does.
[[nodiscard]] double message_seconds(const Machine& machine, double bytes, const GroupPlace& place);

/// Returns the time that each op of a program's step takes on `rank`; `places` says how the rank's
/// groups and messages are placed on nodes. The time of communication counts from the arrival of
/// the last partner. An op is made longer by the time in which the device waits for the host (see
/// Software).
[[nodiscard]] std::vector<units::Nanoseconds> op_times(const Machine& machine,
                                                       const program::RankProgram& program,
                                                       Places& places, int rank);

// The declarations below (sheet_time.cpp) compute times from a data sheet: those of matrix
// multiplication from its processor, those of communication from its network. For algorithms that
// NCCL has, the numbers of hops are those of NCCL's tuning model (NVIDIA/nccl,
// src/graph/tuning.cc).

/// Returns the seconds of a matrix multiplication, without memory traffic and launch. If the size
/// of tiles and the number of multiprocessors are known, the multiprocessors compute the tiles of
/// the output in waves, the last of which may be partial. The function tries several tile sizes and
/// numbers of parts into which k is split, and returns the least time. If the size or the number is
/// not known, it returns the FLOP divided by the reached rate.
[[nodiscard]] double multiply_seconds(const Processor& processor, const MatrixRate& rate,
                                      const program::GemmShape& shape);

/// The time of a collective, with the algorithm and the protocol that take this time.
struct CollectiveEstimate {
  double seconds = 0;
  /// Absent for all-to-all, gather and scatter, for a group of one rank, and if no algorithm of the
  /// network supports the collective.
  std::optional<Algorithm> algorithm{};
  /// Not owned: one of the network's protocols; null if `algorithm` is absent, multicast or
  /// collnet.
  const Protocol* protocol = nullptr;
};

/// Returns the time of a collective with the algorithm and protocol of the network that take the
/// least time; `bytes` as in collective_seconds(). The time is 0 for a group of one rank, and
/// infinite if no algorithm of the network supports the collective.
[[nodiscard]] CollectiveEstimate network_collective(const Network& network, program::OpKind kind,
                                                    double bytes, const GroupPlace& place);
/// Returns the seconds of a message between two ranks.
[[nodiscard]] double network_message(const Network& network, double bytes, const GroupPlace& place);

// The declarations below (measured_time.cpp) derive the times of ops, in seconds, from measured
// times of the same or of other ops. A time is absent if nothing comparable was measured: for a
// GEMM, one with its element type and mode; for communication, a group over the same kind of link
// (inside a node, between nodes).

/// Returns the time of a GEMM. If its shape was measured, it is the measured time. Otherwise the
/// GEMM's rate is the geometric mean of the rates of the four nearest shapes of the same type and
/// mode, with the weights 1 / distance^2. The distance is that in the plane of log(FLOP) and
/// log(smallest of m, n, k).
[[nodiscard]] std::optional<double> measured_gemm_seconds(const Measured& measured,
                                                          const program::Gemm& gemm,
                                                          program::DType type);

/// Returns the time of an op of `kind` whose operands have `bytes`. Between measured sizes,
/// log(time) is interpolated over log(size); beyond them, time is in proportion to bytes. If the
/// kind was not measured, the time per byte is that of the measured op with the nearest size.
[[nodiscard]] std::optional<double> measured_local_seconds(const Measured& measured,
                                                           program::OpKind kind, double bytes);

/// Returns the time of a collective from the arrival of the last member; `bytes` as in
/// collective_seconds(). Groups on one node and groups over several nodes are treated separately.
/// - The time of a measured group is read from its curve of measured times over message sizes.
/// - The time of another group is the time in which links move the bytes, plus an excess. The links
///   take bytes x f / w: each byte passes a link f times (see Moved), and w is the bandwidth of a
///   link in the largest measured group.
/// - The excess depends on the group's size n: its members if it is on one node, else its nodes. It
///   grows by one of two laws, a + b log2 n or a + b n. Between measured groups it is interpolated
///   linearly in log2 n or in n. Below the smallest group it is that of the smallest one. Beyond
///   the largest group it follows the fitted slope b, but never decreases. The fit is made for each
///   message size, since the cost of one more member depends on the message through protocols and
///   pipelining.
/// - If the measurements do not show which law holds, a + b n is used for all_gather,
///   reduce_scatter and all_to_all, and a + b log2 n for the rest, as for the usual algorithms.
/// - If more groups than in the measurement share a node's ports, the bytes are multiplied by the
///   ratio of the two numbers.
/// - If the kind was not measured, its time is derived from kinds that move the same bytes.
/// - A group of one rank takes no time.
[[nodiscard]] std::optional<double> measured_collective_seconds(const Measured& measured,
                                                                program::OpKind kind, double bytes,
                                                                const GroupPlace& place);

/// Returns the time of one message, from measured times of the op kind `exchange`: between nodes if
/// `place` spans two nodes, otherwise inside a node. If more messages than in the measurement share
/// a node's ports, the bytes are multiplied by the ratio of the two numbers.
[[nodiscard]] std::optional<double> measured_message_seconds(const Measured& measured, double bytes,
                                                             const GroupPlace& place);

/// Sets TimedCommunication::law of every curve. A law is set if its errors over the curve's family
/// (see family_of) are clearly smaller than those of the other law, and if the family has groups of
/// at least three sizes; else `fitted` is set.
void settle_laws(Measured& measured);

/// Returns the seconds that a curve gives for `bytes`. Between samples it interpolates by
/// TimedCommunication::between. Above the largest sample, further bytes are moved at the curve's
/// bandwidth. Below the smallest, time decreases at this rate, but not below the latency or, if
/// that is unknown, not faster than in proportion to bytes. If the bandwidth is unknown, time is in
/// proportion to bytes above the largest sample, and constant below the smallest. The curve has at
/// least one sample.
[[nodiscard]] double curve_seconds(const TimedCommunication& curve, double bytes);

// The declarations below derive the time of a collective in a group that was not measured from the
// times of measured groups.

/// Measured groups of different sizes with one kind of collective, all of them on one node or all
/// over several nodes.
struct GroupFamily {
  struct Group {
    double size = 0;                            ///< members if on one node, nodes otherwise
    const TimedCommunication* curve = nullptr;  ///< not owned
  };
  std::vector<Group> groups;  ///< ascending in size, one for each size
  /// For groups over several nodes: the curve of a group on one node that has as many members as
  /// `place`, the argument of family_of(), has on a node. Null if no such group was measured, and
  /// if `groups` are on one node. Not owned.
  const TimedCommunication* on_one_node = nullptr;
};

/// Returns the measured groups of `kind` that, like `place`, are on one node or over several nodes.
/// For a `place` over several nodes, only groups with as many members on a node as `place` are
/// returned if there are any. If several groups have the same size, only the one with the most
/// members is returned. The family has no groups if nothing comparable was measured.
[[nodiscard]] GroupFamily family_of(const Measured& measured, program::OpKind kind,
                                    const GroupPlace& place);

/// Returns busbw over algbw (nccl-tests, doc/PERFORMANCE.md): 2 (n-1) / n for all_reduce, (n-1) / n
/// for collectives in which ranks send or receive parts of the data, else 1.
[[nodiscard]] double wire_factor(program::OpKind kind, double members);

/// Returns the seconds of a collective of `bytes` in a group of `members` ranks that is not in the
/// family, which has at least one group. `size` is the number of its members if it is on one node,
/// else of its nodes. The time that is not spent on moving bytes grows by `law` (logarithmic or
/// proportional). Data moves in the way that the measured times show, or else in the way `untold`.
[[nodiscard]] double grown_seconds(const GroupFamily& family, GrowthLaw law, Moved untold,
                                   double size, double members, double bytes);

}  // namespace isoscale::simulate
