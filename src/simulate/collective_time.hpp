// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

/// Communication on a network that its sheet describes. The algorithms, and the latencies they have
/// in hops, are those of NCCL's tuning model (NVIDIA/nccl, src/graph/tuning.cc).
namespace isoscale::simulate {

/// What a collective takes, and by which algorithm and protocol.
struct CollectiveEstimate {
  double seconds = 0;
  Algorithm algorithm = Algorithm::ring;
  const Protocol* protocol = nullptr;  ///< of the network; null where it names none
};

/// Of `bytes`, as OutlineOp::bytes counts them: the least over algorithms and protocols.
[[nodiscard]] CollectiveEstimate network_collective(const Network& network, program::OpKind kind,
                                                    double bytes, const GroupPlace& place);
/// Seconds of a message between two ranks.
[[nodiscard]] double network_message(const Network& network, double bytes, const GroupPlace& place);

}  // namespace isoscale::simulate
