// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/options.hpp"

namespace isoscale::workloads::stack {

/// The options of every workload that is composed from the stack.
[[nodiscard]] std::span<const OptionSpec> option_table();

}  // namespace isoscale::workloads::stack
