// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/bench/bench.hpp"
#include "workloads/workload.hpp"

/// A multiplication and a collective, each alone and both at once.
namespace isoscale::workloads::overlap {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();
[[nodiscard]] Bench build(const Request& request, int batch);

}  // namespace isoscale::workloads::overlap
