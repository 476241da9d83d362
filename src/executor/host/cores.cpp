// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "machine/kernel_files.hpp"

namespace isoscale::executor::host {

int cores_of_rank(int allowed, int on_node, int ranks_on_node, std::optional<double> quota) {
  const int ranks = std::max(1, ranks_on_node);
  const int share = std::max(1, on_node / ranks);
  const int cores = allowed > share ? allowed / ranks : allowed;
  // A quota may be larger than any machine, so it is not made an int before the least is taken.
  const double granted = quota ? std::floor(*quota / ranks) : cores;
  return std::max(1, static_cast<int>(std::min<double>(cores, granted)));
}

int cores_of_this_rank(int ranks_on_node) {
  const int on_node = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t mask;
  // Fails on machines with more CPUs than the mask holds; those are not short of cores.
  const int allowed = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : on_node;
  return cores_of_rank(allowed, on_node, ranks_on_node, machine::cpu_limit(machine::read_file));
}

}  // namespace isoscale::executor::host
