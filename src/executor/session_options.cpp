// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "executor/executor.hpp"

namespace isoscale::executor {

void require_usual(const SessionOptions& options, std::string_view name) {
  if (!options.collective_algorithm.empty() || !options.collective_protocol.empty()) {
    throw Unsupported(
        fmt::format("the {} device cannot be told which algorithm or protocol to use", name));
  }
  if (options.registration != Registration::none) {
    throw Unsupported(fmt::format("the {} device registers no memory", name));
  }
  if (options.numa_node) {
    throw Unsupported(fmt::format("the {} device does not choose where host memory lies", name));
  }
}

}  // namespace isoscale::executor
