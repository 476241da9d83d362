// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "units/quantity.hpp"

/// What this machine is, and rules about it as pure functions over those facts.
namespace isoscale::system {

/// Facts of one rank's machine and of its place on it. What could not be found out is absent.
struct MachineFacts {
  std::string host;
  std::optional<std::string> cpu_model;
  std::optional<int> sockets, cores, numa_nodes;  ///< of the node; cores are physical
  std::optional<units::Bytes> memory_total, memory_available;
  std::vector<int> bound_cpus;      ///< logical CPUs this process may run on; empty = unknown
  std::vector<int> bound_core_ids;  ///< their physical cores, numbered within the node
  std::optional<std::string> os;    ///< "Linux 6.1.0"
  std::optional<double> cpu_quota;  ///< cgroup limit in CPUs; absent = none found
};
[[nodiscard]] MachineFacts machine_facts();

/// Looks an environment variable up; nullopt = unset.
using Lookup = std::function<std::optional<std::string>(std::string_view)>;
[[nodiscard]] Lookup process_environment();

/// The variables that a run file keeps, by an explicit list of names (never by prefix: a
/// scheduler's token is a secret). Only those that are set, in list order.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> recorded_environment(
    const Lookup& environment);
/// Those of them that set how threads, MPI, networks and devices work; not what describes the job
/// and its ranks.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> recorded_settings(
    const Lookup& environment);
/// What launchers say of numbers of processes, nodes, CPUs and GPUs, by an explicit list of names;
/// only those that are set, and to whole numbers.
[[nodiscard]] std::map<std::string, std::int64_t> launcher_numbers(const Lookup& environment);

/// Whether a job's processes were started without MPI's wiring, so that each thinks it is alone.
/// Returns the reason to stop as a sentence with the fix, or nullopt. Rule: world = 1 and
/// (OMPI_COMM_WORLD_SIZE or PMI_SIZE > 1, or neither set and SLURM_STEP_NUM_TASKS > 1 or
/// SLURM_PROCID > 0). Nothing is concluded when world > 1.
[[nodiscard]] std::optional<std::string> singleton_problem(int world, const Lookup& environment);

/// Whether this process is the one that speaks for all that a launcher started: its rank as the
/// launcher numbers it is 0, or there is no launcher. For messages before (or without) MPI.
[[nodiscard]] bool speaks_for_launch(const Lookup& environment);

}  // namespace isoscale::system
