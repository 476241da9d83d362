// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/api/workload.hpp"

/// Measures memory bandwidth: copies between host and device, copies within the memory of either,
/// the triad (a + 3 b), and managed memory in comparison with explicit copies.
namespace isoscale::workloads::memory {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

}  // namespace isoscale::workloads::memory
