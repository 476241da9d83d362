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

/// Gives the time of an op on a machine: from its measurements if they have it, else from its data
/// sheet.
namespace isoscale::simulate {

/// Returns the seconds of one GEMM with operands of `type` that moves `bytes` of memory:
/// multiplying and moving overlap, so the longer of the two counts. Throws base::UsageError if the
/// machine does not give the rate of that type.
[[nodiscard]] double gemm_seconds(const Machine& machine, const program::Gemm& gemm,
                                  program::DType type, double bytes);
/// Returns the seconds of an op that neither multiplies nor communicates. `bytes` are the bytes of
/// its operands, by which measurements are looked up; `moved` are the bytes that it reads and
/// writes, to which a data sheet's bandwidth applies.
[[nodiscard]] double local_seconds(const Machine& machine, program::OpKind kind, double bytes,
                                   double moved);
/// Returns the seconds of a collective of `bytes` (as OutlineOp::bytes counts them), from the
/// arrival of the last member.
[[nodiscard]] double collective_seconds(const Machine& machine, program::OpKind kind, double bytes,
                                        const GroupPlace& place);
/// Returns the seconds of one message.
[[nodiscard]] double message_seconds(const Machine& machine, double bytes, const GroupPlace& place);

/// Returns the time that each op of a program's step takes on `rank`, whose groups and messages
/// have these places; the time of communication counts from the last arrival.
[[nodiscard]] std::vector<units::Nanoseconds> op_times(const Machine& machine,
                                                       const program::RankProgram& program,
                                                       Places& places, int rank);

// The following functions (sheet_time.cpp) compute times from a data sheet: times of matrix
// multiplication from its processor, and times of communication from its network. The algorithms of
// communication, and their latencies in hops, are those of NCCL's tuning model (NVIDIA/nccl,
// src/graph/tuning.cc).

/// Returns the seconds of a multiplication without memory traffic and launch. If the sizes of tiles
/// and the number of multiprocessors are known, the multiprocessors compute the tiles of the output
/// in waves, the last of which may be partial. The size and shape of the tiles and the number of
/// parts into which k is split are those that take the least time.
[[nodiscard]] double multiply_seconds(const Processor& processor, const MatrixRate& rate,
                                      const program::GemmShape& shape);

/// The time of a collective, with the algorithm and protocol that give it.
struct CollectiveEstimate {
  double seconds = 0;
  std::optional<Algorithm> algorithm{};  ///< absent for all-to-all, gather and scatter
  const Protocol* protocol = nullptr;    ///< one of the network's; null if the network names none
};

/// Returns the time of a collective of `bytes` (as OutlineOp::bytes counts them): the least over
/// all algorithms and protocols of the network.
[[nodiscard]] CollectiveEstimate network_collective(const Network& network, program::OpKind kind,
                                                    double bytes, const GroupPlace& place);
/// Returns the seconds of a message between two ranks.
[[nodiscard]] double network_message(const Network& network, double bytes, const GroupPlace& place);

}  // namespace isoscale::simulate
