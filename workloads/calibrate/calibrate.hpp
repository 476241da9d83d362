// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/api/workload.hpp"

/// Measures times from which the speed of a machine is fitted: those of collectives at several
/// message sizes, and those of matrix multiplications. The cases are those of the workloads gemm
/// and collectives.
namespace isoscale::workloads::calibrate {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

}  // namespace isoscale::workloads::calibrate
