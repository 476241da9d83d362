// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "units/quantity.hpp"

namespace isoscale::machine {

/// Facts of a node. Unknown facts are absent.
struct NodeFacts {
  std::string host;
  std::optional<std::string> cpu_model;
  std::optional<std::string> os;                      ///< "Linux 6.1.0"
  std::optional<int> cores;                           ///< physical
  std::optional<double> cpu_quota;                    ///< CPUs that a control group allows the job
  std::map<std::string, std::vector<int>> numa_cpus;  ///< logical CPUs by NUMA node "0", "1", ...
};

/// Facts of one rank's machine and of its place on it.
struct MachineFacts : NodeFacts {
  std::optional<int> sockets, numa_nodes;
  std::optional<units::Bytes> memory_total, memory_available;
  std::vector<int> bound_cpus;      ///< logical CPUs this process may run on; empty = unknown
  std::vector<int> bound_core_ids;  ///< their physical cores, numbered within the node
};
[[nodiscard]] MachineFacts machine_facts();

}  // namespace isoscale::machine
