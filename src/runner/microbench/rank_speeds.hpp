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
#include "program/program.hpp"
#include "workloads/api/workload.hpp"

/// Measures how fast each rank computes and communicates. The sniff test uses it before points are
/// measured, since a node can be slow although all its facts are right. Workloads that partition
/// work by speed use it, too.
namespace isoscale::runner::microbench {

/// The partner of each rank in exchanges that run at the same time; -1 = the rank takes no part.
using Partners = std::vector<int>;

/// Returns the phases of the sniff test, in each of which ranks exchange data in pairs. In the
/// first phase the pairs are neighbours on a node (places 0-1, 2-3, ...). In the second they are
/// ranks in the same place of two nodes (nodes 0-1, 2-3, ...). If the number of nodes is odd, a
/// third phase pairs the last node with the first. A rank without such a partner takes no part.
/// Pure.
[[nodiscard]] std::vector<Partners> sniff_phases(std::span<const int> node_of_rank);

/// The result of the sniff test on this rank.
struct Sniffed {
  std::optional<double> gemm_rate;  ///< FLOP/s of this rank while all ranks multiply
  std::vector<preflight::CheckedNeighbour> neighbours;
  std::optional<std::string> problem;  ///< why it failed; the same on all ranks
};

/// Collective over `world`: every rank plays a multiplication, then ranks exchange data in pairs.
/// Takes about two seconds on a network of 1 Gbit/s or more.
[[nodiscard]] Sniffed sniff(executor::Executor& executor, const comm::Communicator& world,
                            std::span<const int> node_of_rank);

/// True if a request needs Request::speed_of_rank: it has partition=proportional and several
/// replicas.
[[nodiscard]] bool partitions_by_speed(const workloads::Request& request);

/// Returns a program that consists of the multiplication with the most FLOP in any rank's step; all
/// ranks play it. Throws base::Error if the workload has no multiplication.
[[nodiscard]] program::ProgramSet largest_multiplication(const program::ProgramSet& set);

/// Collective over the point: all ranks play `set` at the same time. Returns the FLOP/s of each
/// rank, from the median of several plays. `faults` are injected, since they will slow this rank in
/// the point, too.
[[nodiscard]] std::vector<double> measure_speeds(const program::ProgramSet& set,
                                                 executor::Executor& executor,
                                                 const comm::Communicator& point,
                                                 const program::Faults& faults);

}  // namespace isoscale::runner::microbench
