// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "executor/executor.hpp"
#include "machine/memory_policy.hpp"

namespace isoscale::executor {

void require_usual_communication(const SessionOptions& options, std::string_view name) {
  if (!options.collective_algorithm.empty() || !options.collective_protocol.empty()) {
    throw Unsupported(fmt::format("the {} device has no choice of algorithm or protocol", name));
  }
  if (options.registration != Registration::none) {
    throw Unsupported(fmt::format("the {} device registers no memory", name));
  }
}

void require_no_faults(const SessionOptions& options, std::string_view name) {
  if (options.faults.any()) {
    throw Unsupported(fmt::format("the {} device cannot be slowed down on purpose", name));
  }
}

void on_numa_node(const SessionOptions& options, const std::function<void()>& work) {
  if (!options.numa_node) return work();
  std::optional<machine::MemoryOnNode> placed;
  try {
    placed.emplace(*options.numa_node);
  } catch (const machine::PlacementError& error) {
    throw Unsupported(error.what());
  }
  work();
}

}  // namespace isoscale::executor
