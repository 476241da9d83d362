// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "workloads/api/bench.hpp"
#include "workloads/api/workload.hpp"

/// Memory bandwidth: copies between host and device, within each, triad, and managed memory against
/// explicit copies.
namespace isoscale::workloads::memory {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

[[nodiscard]] Bench build(const Request& request, int batch);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);
/// Kinds that the device has where none are named; the numbers of all NUMA nodes for numa=all.
[[nodiscard]] Request on_machine(const Request& request, const Machine& machine);

/// The transfers that are timed. The last five bring data that lies with the host to the device,
/// where one kernel reads it: by a copy before, or by the pages of managed memory, which move when
/// they are touched or as advice has it.
enum class Kind : std::uint8_t {
  h2d_pinned,
  d2h_pinned,
  h2d_pageable,
  d2h_pageable,
  d2d,
  copy,
  triad,
  explicit_copy,
  managed,
  managed_prefetch,
  managed_read_mostly,
  managed_preferred_device,
};
inline constexpr std::size_t kind_count = 12;
[[nodiscard]] std::string_view option_name(Kind kind);  ///< "h2d-pinned"
[[nodiscard]] std::string_view row_name(Kind kind);     ///< "h2d pinned"
[[nodiscard]] bool is_managed(Kind kind);

enum class Together : std::uint8_t { one, all };

struct MemoryCase {
  Kind kind = Kind::copy;
  Together together = Together::all;
  std::uint64_t count = 0;  ///< elements of one array

  [[nodiscard]] std::uint64_t size() const;  ///< bytes of one array
  /// Bytes that the row's bandwidth is defined on: what crosses between host and device, once; what
  /// is read and written where both ends are one memory.
  [[nodiscard]] std::uint64_t bytes() const;
};
/// Throws base::UsageError when nothing is left to measure.
[[nodiscard]] std::vector<MemoryCase> cases_of(const Request& request);
/// The NUMA nodes that host memory lies on, one batch each; absent: where it comes to lie.
[[nodiscard]] std::vector<std::optional<int>> numa_nodes_of(const Request& request);

}  // namespace isoscale::workloads::memory
