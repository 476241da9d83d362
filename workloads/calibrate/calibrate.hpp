// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/api/workload.hpp"

/// Measures the curves and rates from which a machine's speed is fitted. The cases are those of the
/// workloads gemm and collectives.
namespace isoscale::workloads::calibrate {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

}  // namespace isoscale::workloads::calibrate
