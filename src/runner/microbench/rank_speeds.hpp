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
#include "program/session_options.hpp"
#include "workloads/api/workload.hpp"

/// Measures how fast each rank computes and communicates, before points are measured. The sniff
/// test needs it, since a node can be slow though all its facts are right, and so do workloads that
/// partition work by speed.
namespace isoscale::runner {

/// The partner of each rank in exchanges that run at the same time; -1 = the rank sits out.
using Partners = std::vector<int>;

/// Returns the phases of the sniff test, in each of which ranks exchange in pairs: first neighbours
/// on a node (places 0-1, 2-3, ...), then ranks in the same place of two nodes (nodes 0-1, 2-3,
/// ...; if their number is odd, the last and the first in a phase of its own). A rank without such
/// a partner sits out. Pure.
[[nodiscard]] std::vector<Partners> sniff_phases(std::span<const int> node_of_rank);

/// The result of the sniff test on this rank.
struct Sniffed {
  std::optional<double> gemm_rate;  ///< FLOP/s of this rank while all multiply
  std::vector<preflight::CheckedNeighbour> neighbours;
  std::optional<std::string> problem;  ///< why it failed; the same on all ranks
};

/// Collective over `world`; takes about two seconds on a network of 1 Gbit/s or more. Plays a
/// multiplication on every rank, then exchanges in pairs.
[[nodiscard]] Sniffed sniff(executor::Executor& executor, const comm::Communicator& world,
                            std::span<const int> node_of_rank);

/// True if a request needs Request::speed_of_rank: partition=proportional with several replicas.
[[nodiscard]] bool partitions_by_speed(const workloads::Request& request);

/// Returns the multiplication with the most FLOP in any rank's step, as a program of its own that
/// all ranks play. Throws base::Error if the workload multiplies nothing.
[[nodiscard]] program::ProgramSet largest_multiplication(const program::ProgramSet& set);

/// Collective over the point: all ranks play `set` at the same time. Returns the FLOP/s of each
/// rank, from the median of several plays. `faults` slow this rank as they will in the point.
[[nodiscard]] std::vector<double> measure_speeds(const program::ProgramSet& set,
                                                 executor::Executor& executor,
                                                 const comm::Communicator& point,
                                                 const program::Faults& faults);

}  // namespace isoscale::runner
