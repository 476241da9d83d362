// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "units/quantity.hpp"

namespace isoscale::machine {

/// The facts of one rank's machine, and of the CPUs that the rank may use there. Unknown facts are
/// absent.
struct MachineFacts {
  std::string host;
  std::optional<std::string> cpu_model;
  std::optional<int> sockets, cores, numa_nodes;  ///< counts on the node; cores are physical
  /// Logical CPUs by NUMA node, "0", "1", ...; a node with only memory has none.
  std::map<std::string, std::vector<int>> numa_cpus{};
  std::optional<units::Bytes> memory_total, memory_available;
  std::vector<int> bound_cpus;  ///< logical CPUs this process may run on; empty = unknown
  /// The physical cores of `bound_cpus`, numbered within the compute node; equal to `bound_cpus` if
  /// no cores are known.
  std::vector<int> bound_core_ids;
  std::optional<std::string> os;    ///< "Linux 6.1.0"
  std::optional<double> cpu_quota;  ///< cgroup limit in CPUs; absent = none found
};
[[nodiscard]] MachineFacts machine_facts();

/// Returns how many processes can have a core of their own at the same time. `cores` holds, for
/// each process, the cores that it may run on.
[[nodiscard]] std::size_t count_with_own_core(const std::vector<std::vector<int>>& cores);

}  // namespace isoscale::machine
