// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "workloads/api/workload.hpp"

/// Memory bandwidth: copies between host and device, within each, triad, and managed memory against
/// explicit copies.
namespace isoscale::workloads::memory {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

[[nodiscard]] Bench build(const Request& request, int batch);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);
/// Fills in the kinds that the device has, if none are named, and the numbers of all NUMA nodes for
/// numa=all.
[[nodiscard]] Request on_machine(const Request& request, const Machine& machine);

/// The transfers that are timed. The last five bring data from the host to the device, where one
/// kernel reads it: by a copy before the kernel, or by the pages of managed memory, which move when
/// they are touched or as advised.
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
  /// Returns the bytes that the row's bandwidth is defined on: bytes that cross between host and
  /// device count once; if both ends are in one memory, bytes read and written count.
  [[nodiscard]] std::uint64_t bytes() const;
};
/// Returns the cases. Throws base::UsageError if nothing is left to measure.
[[nodiscard]] std::vector<MemoryCase> cases_of(const Request& request);
/// Returns the NUMA nodes for host memory, one batch each; absent: the system chooses the node.
[[nodiscard]] std::vector<std::optional<int>> numa_nodes_of(const Request& request);

}  // namespace isoscale::workloads::memory
