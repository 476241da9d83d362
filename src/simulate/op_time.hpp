// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "program/program.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "units/quantity.hpp"

/// An op takes as long on a machine as that measured, where this says something, else as its sheet
/// says.
namespace isoscale::simulate {

/// Seconds of one GEMM with operands of `type`. Throws base::UsageError when the machine says
/// nothing of that type.
[[nodiscard]] double gemm_seconds(const Machine& machine, const program::Gemm& gemm,
                                  program::DType type);
/// Seconds of an op that neither multiplies nor communicates and moves `bytes` of device memory.
[[nodiscard]] double local_seconds(const Machine& machine, program::OpKind kind, double bytes);
/// Seconds of a collective of `bytes` (as OutlineOp::bytes counts them), all members there.
[[nodiscard]] double collective_seconds(const Machine& machine, program::OpKind kind, double bytes,
                                        const GroupPlace& place);
/// Seconds of one message.
[[nodiscard]] double message_seconds(const Machine& machine, double bytes, const GroupPlace& place);

/// Times of each op of a program's section, as `rank` plays it; of communication from the last
/// arrival.
[[nodiscard]] std::vector<units::Nanoseconds> op_times(const Machine& machine,
                                                       const program::RankProgram& program,
                                                       program::Section section,
                                                       const mesh::Shape& shape,
                                                       const Layout& layout, int rank);

// A data sheet gives these times (sheet_time.cpp): of matrix multiplication on its processor, and
// of communication on its network. The algorithms of the latter, and the latencies they have in
// hops, are those of NCCL's tuning model (NVIDIA/nccl, src/graph/tuning.cc).

struct GemmShape {
  double m = 0, n = 0, k = 0, batch = 1;
  [[nodiscard]] double flop() const { return 2 * m * n * k * batch; }
};

/// Seconds without memory and launch. Where tiles and units are known, tiles of the output are
/// dealt to units in waves, the last of which may be short; the size and shape of tiles, and into
/// how many parts k is split, are those that take least.
[[nodiscard]] double multiply_seconds(const Processor& processor, const MatrixRate& rate,
                                      const GemmShape& shape);

/// The time of a collective, and the algorithm and protocol that give it.
struct CollectiveEstimate {
  double seconds = 0;
  Algorithm algorithm = Algorithm::ring;
  const Protocol* protocol = nullptr;  ///< of the network; null where it names none
};

/// The time for `bytes`, as OutlineOp::bytes counts them: the least over algorithms and protocols.
[[nodiscard]] CollectiveEstimate network_collective(const Network& network, program::OpKind kind,
                                                    double bytes, const GroupPlace& place);
/// Seconds of a message between two ranks.
[[nodiscard]] double network_message(const Network& network, double bytes, const GroupPlace& place);

}  // namespace isoscale::simulate
