// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

/// A data sheet gives these times: of matrix multiplication on its processor, and of communication
/// on its network. The algorithms of the latter, and the latencies they have in hops, are those of
/// NCCL's tuning model (NVIDIA/nccl, src/graph/tuning.cc).
namespace isoscale::simulate {

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
