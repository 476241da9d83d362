// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>

#include "program/match_table.hpp"
#include "program/outline.hpp"
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

/// The time of one step in which a GEMM takes a nanosecond for each FLOP and what `moves` some for
/// each byte that a rank sends or, folded, all that one after the other.
[[nodiscard]] inline double step_time(const program::ProgramSet& set,
                                      program::Folding folding = program::Folding::as_streamed,
                                      bool (*moves)(program::OpKind) = program::communicates,
                                      std::int64_t nanoseconds_each = 1) {
  program::OutlineSet outline = program::outline(set, program::Section::step);
  if (folding == program::Folding::folded) outline = folded(std::move(outline));
  Costs costs = unit_costs(outline);
  for (std::size_t t = 0; t < costs.tables.size(); ++t) {
    for (std::size_t i = 0; i < costs.tables[t].size(); ++i) {
      const program::OutlineOp& op = outline.outlines[t].ops[i];
      if (!moves(op.kind)) continue;
      costs.tables[t][i] =
          units::Nanoseconds{static_cast<std::int64_t>(op.bytes) * nanoseconds_each};
    }
  }
  const auto plays = simulate(outline, costs, {.plays = 1});
  std::int64_t end = 0;
  for (const auto& rank : plays[0].ranks) end = std::max(end, rank.end.value());
  return static_cast<double>(end);
}

}  // namespace isoscale::simulate
