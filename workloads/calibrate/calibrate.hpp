// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/api/workload.hpp"

/// A calibration: it consists of parts of other micro-benchmarks.
namespace isoscale::workloads::calibrate {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

}  // namespace isoscale::workloads::calibrate
