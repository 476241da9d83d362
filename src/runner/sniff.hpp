// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "preflight/job_facts.hpp"

/// A short look at what every rank computes and exchanges: a node can be slow though all its facts
/// are right.
namespace isoscale::runner {

/// Who exchanges with whom at the same time; -1 = this rank sits out.
using Partners = std::vector<int>;

/// The phases of the sniff test, in each of which ranks exchange in pairs: neighbours of a node
/// (places 0-1, 2-3, ...), then ranks in the same place of two nodes (0-1, 2-3, ...; the last of an
/// odd number with the first, in a phase of its own). A rank whose node has too few others sits
/// out. Pure.
[[nodiscard]] std::vector<Partners> sniff_phases(std::span<const int> node_of_rank);

struct Sniffed {
  std::optional<double> gemm_rate;  ///< FLOP/s of this rank while all multiply
  std::vector<preflight::CheckedNeighbour> neighbours;
  std::optional<std::string> problem;  ///< why nothing came of it; alike on all ranks
};

/// Collective over `world`; about two seconds on a network of 1 Gbit/s and more. What is played is
/// a multiplication on every rank, then exchanges in pairs.
[[nodiscard]] Sniffed sniff(executor::Executor& executor, const comm::Communicator& world,
                            std::span<const int> node_of_rank);

}  // namespace isoscale::runner
