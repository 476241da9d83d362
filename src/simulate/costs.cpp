// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/simulate.hpp"

namespace isoscale::simulate {

Costs unit_costs(const program::OutlineSet& set) {
  Costs costs{.tables = {}, .table_of_rank = set.outline_of_rank};
  costs.tables.reserve(set.outlines.size());
  for (const program::Outline& outline : set.outlines) {
    auto& table = costs.tables.emplace_back();
    table.reserve(outline.ops.size());
    for (const program::OutlineOp& op : outline.ops) {
      table.emplace_back(static_cast<std::int64_t>(op.flop));
    }
  }
  return costs;
}

}  // namespace isoscale::simulate
