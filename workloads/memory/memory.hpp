// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/api/workload.hpp"

/// Measures memory bandwidth: copies between host and device and within each of them, the triad,
/// and managed memory in comparison with explicit copies.
namespace isoscale::workloads::memory {

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] BenchHooks hooks();

[[nodiscard]] Bench build(const Request& request, int batch);
[[nodiscard]] std::vector<Expectation> expect(const Request& request, int batch, std::size_t index,
                                              int rank);
/// Returns the request with defaults filled in: the kinds that the device supports if none are
/// named, and the numbers of all NUMA nodes for numa=all.
[[nodiscard]] Request on_machine(const Request& request, const Machine& machine);

/// The transfers that are timed. The last five bring data from the host to the device, where one
/// kernel reads it. The data is copied before the kernel, or it is in managed memory, whose pages
/// are touched, prefetched or advised.
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
[[nodiscard]] std::string row_name(Kind kind);          ///< "h2d pinned"
[[nodiscard]] bool is_managed(Kind kind);

enum class Together : std::uint8_t { one, all };

struct MemoryCase {
  Kind kind = Kind::copy;
  Together together = Together::all;
  std::uint64_t count = 0;  ///< elements of one array

  [[nodiscard]] std::uint64_t size() const;  ///< bytes of one array
  /// Returns the bytes from which the row's bandwidth is computed. Bytes that are moved between
  /// host and device count once. Within one memory, both the bytes read and the bytes written
  /// count.
  [[nodiscard]] std::uint64_t bytes() const;
};
/// Returns the cases. Throws base::UsageError if there are none.
[[nodiscard]] std::vector<MemoryCase> cases_of(const Request& request);
/// Returns the NUMA nodes from which host memory is allocated, one for each batch; absent: the
/// system chooses the node.
[[nodiscard]] std::vector<std::optional<int>> numa_nodes_of(const Request& request);

}  // namespace isoscale::workloads::memory
