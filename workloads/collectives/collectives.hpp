// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "workloads/bench/bench.hpp"
#include "workloads/workload.hpp"

/// Collective operations of many sizes, each checked bit for bit.
namespace isoscale::workloads::collectives {

[[nodiscard]] BenchHooks hooks();

[[nodiscard]] Bench build(const Request& request, int batch);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);

}  // namespace isoscale::workloads::collectives
