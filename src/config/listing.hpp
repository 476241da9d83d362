// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "config/command_line.hpp"
#include "workloads/workload.hpp"

namespace isoscale::config {

/// What `isoscale list ...` prints: one line each, ends in a line break.
[[nodiscard]] std::string listing(const ListCommand& command,
                                  std::span<const workloads::Workload> known);

}  // namespace isoscale::config
