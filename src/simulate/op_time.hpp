// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <vector>

#include "program/outline.hpp"
#include "program/program.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "units/quantity.hpp"

/// Gives the time of an op on a machine: from measured times if the machine has them, else from its
/// data sheet.
namespace isoscale::simulate {

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
/// Returns the seconds of a collective, from the arrival of the last member. `bytes` are the data
/// of the whole group for all_gather, gather and scatter, and for other kinds the larger buffer of
/// one rank. Throws base::UsageError if neither measured times nor a network are known for the
/// group.
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
// NCCL has, the latencies in hops are those of NCCL's tuning model (NVIDIA/nccl,
// src/graph/tuning.cc).

/// Returns the seconds of a matrix multiplication, without memory traffic and launch. If the size
/// of tiles and the number of multiprocessors are known, the multiprocessors compute the tiles of
/// the output in waves, the last of which may be partial. The function tries several tile sizes and
/// numbers of parts into which k is split, and returns the least time. If the size or the number is
/// not known, it returns the FLOP divided by the reached rate.
[[nodiscard]] double multiply_seconds(const Processor& processor, const MatrixRate& rate,
                                      const program::GemmShape& shape);

/// The time of a collective, with the algorithm and the protocol that it is for.
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

}  // namespace isoscale::simulate
