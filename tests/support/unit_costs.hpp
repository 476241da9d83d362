// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "simulate/simulate.hpp"

namespace isoscale::simulate {

/// Returns costs of 1 ns for every FLOP of a GEMM and 0 for all else: idle time is exact.
[[nodiscard]] inline Costs unit_costs(const program::OutlineSet& set) {
  Costs costs{.tables = {}, .table_of_rank = set.outline_of_rank};
  for (const program::Outline& outline : set.outlines) {
    auto& table = costs.tables.emplace_back();
    for (const program::OutlineOp& op : outline.ops) {
      table.emplace_back(static_cast<std::int64_t>(op.flop));
    }
  }
  return costs;
}

}  // namespace isoscale::simulate
