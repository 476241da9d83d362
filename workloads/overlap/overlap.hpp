// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/api/workload.hpp"

/// Measures a multiplication and a collective, each alone and both at once.
namespace isoscale::workloads::overlap {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

}  // namespace isoscale::workloads::overlap
