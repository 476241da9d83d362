// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "workloads/bench/bench.hpp"
#include "workloads/workload.hpp"

/// Messages between pairs of ranks: latency and bandwidth of every link, checked bit for bit.
namespace isoscale::workloads::p2p {

[[nodiscard]] BenchHooks hooks();

[[nodiscard]] int batches(const Request& request);
/// A batch is some rounds of pairs, each with a case per kind (two for bandwidth, one in each
/// direction) and a row per pair; the last one is what all ranks do together.
[[nodiscard]] Bench build(const Request& request, int batch);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);

}  // namespace isoscale::workloads::p2p
