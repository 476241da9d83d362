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

/// Measures how fast each rank computes and communicates. There are two uses: the sniff test of
/// preflight, which is made before a run, since a node can be slow although all facts about it are
/// right; and the option partition=proportional, which divides work by the speeds of ranks.
namespace isoscale::runner::microbench {

/// The partner of each rank in exchanges that take place at the same time; -1 = the rank has none.
using Partners = std::vector<int>;

/// Returns the phases of the sniff test. In each phase, ranks exchange data in pairs. In the first
/// phase they are neighbours on a node: the ranks with local numbers 0 and 1, 2 and 3, ... In the
/// second phase they have the same local number on two nodes: nodes 0 and 1, 2 and 3, ... If the
/// number of nodes is odd and above 1, a third phase pairs the last node with the first. A rank
/// without a partner takes no part in the phase. A phase without any pair is left out.
[[nodiscard]] std::vector<Partners> sniff_phases(std::span<const int> node_of_rank);

/// The results of the sniff test on this rank.
struct Sniffed {
  /// FLOP/s of this rank while all ranks multiply at the same time; absent if that failed.
  std::optional<double> gemm_rate;
  std::vector<preflight::CheckedNeighbour> neighbours;
  /// The reason why the test failed, the same on all ranks; absent if it did not.
  std::optional<std::string> problem;
};

/// Collective over `world`: all ranks multiply matrices at the same time, then exchange data in
/// pairs. On a network of at least 1 Gbit/s this takes about two seconds.
[[nodiscard]] Sniffed sniff(executor::Executor& executor, const comm::Communicator& world,
                            std::span<const int> node_of_rank);

/// True if a workload divides this request's work by Request::speed_of_rank: if the option
/// partition=proportional is set and there are several replicas.
[[nodiscard]] bool partitions_by_speed(const workloads::Request& request);

/// Returns programs in which every rank makes the same single multiplication. It is the one with
/// the most FLOP of all multiplications in the steps of `set`. Throws base::Error if there is none.
[[nodiscard]] program::ProgramSet largest_multiplication(const program::ProgramSet& set);

/// Collective over the point: all ranks play `set` at the same time. Returns the FLOP/s of each
/// rank, from the median of several plays. `faults` are the injected faults of this rank; they are
/// active here, since they will also slow the rank when the point is measured.
[[nodiscard]] std::vector<double> measure_speeds(const program::ProgramSet& set,
                                                 executor::Executor& executor,
                                                 const comm::Communicator& point,
                                                 const program::Faults& faults);

}  // namespace isoscale::runner::microbench
