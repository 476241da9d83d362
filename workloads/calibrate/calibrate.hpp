// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/api/workload.hpp"

/// Measures what a machine's speed is fitted from: times of collectives over message sizes, and
/// rates of matrix multiplications. The cases are those of the workloads gemm and collectives.
namespace isoscale::workloads::calibrate {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

}  // namespace isoscale::workloads::calibrate
