// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "workloads/api/workload.hpp"

/// Measures a multiplication and a collective, each alone and both at once.
namespace isoscale::workloads::overlap {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();
[[nodiscard]] Bench build(const Request& request, int batch);
/// Returns the values that the collective of case number `index` leaves on `rank`.
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);

}  // namespace isoscale::workloads::overlap
