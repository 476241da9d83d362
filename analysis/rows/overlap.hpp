// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/rows/row.hpp"

namespace isoscale::analysis {

/// A multiplication and a collective, each alone and then at once; seconds of one call.
struct OverlapReport {
  std::string pair;  ///< number of the pair
  std::string collective, dtype;
  std::optional<double> bytes, m, n, k;
  std::optional<double> gemm, communication;  ///< alone
  std::optional<double> together;             ///< until both have ended
  /// How much longer each part takes beside the other, 1.0 = as long as alone. Absent where the
  /// parts were not timed within the whole (parts "gemm together" and "collective together").
  std::optional<double> gemm_slowdown, communication_slowdown;
  /// Seconds alone, from traced plays, which the slowdowns are relative to.
  std::optional<double> gemm_traced, communication_traced;
  /// (gemm + collective - together) / the shorter of the two alone: 1 when it is hidden wholly, 0
  /// when nothing is, negative when together takes longer than one after the other. Its 95%
  /// interval combines those of the three medians in quadrature.
  std::optional<Located> hidden;
  /// True if the interval of `hidden` is at most as wide as the whole range from 0 to 1. A share
  /// that is not known is shown, but nothing is concluded from it.
  bool hidden_known = false;
  std::string failure;  ///< why something of it is missing; "" when nothing failed
  std::string
      why_unknown;  ///< why a share or slowdown is absent or not known though nothing failed
};

/// One entry for each pair, in the order of their first rows.
[[nodiscard]] std::vector<OverlapReport> merge_overlaps(std::span<const RowReport> rows);

}  // namespace isoscale::analysis
