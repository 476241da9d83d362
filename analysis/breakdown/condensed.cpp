// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/condensed.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace isoscale::analysis {
namespace {

using program::OutlineOp;

/// Ops that some other op waits for, by program order.
std::vector<bool> awaited_ops(const program::Outline& outline) {
  std::array<std::vector<std::uint32_t>, program::max_streams> on_stream;
  std::vector<bool> awaited(outline.ops.size());
  for (std::uint32_t op = 0; op < outline.ops.size(); ++op) {
    for (const program::Wait& wait : outline.waits_of(outline.ops[op])) {
      const auto& before = on_stream[wait.stream];
      if (wait.count > 0 && wait.count <= before.size()) awaited[before[wait.count - 1]] = true;
    }
    on_stream[outline.ops[op].stream].push_back(op);
  }
  return awaited;
}

}  // namespace

Condensed::Condensed(const program::OutlineSet& whole, program::Folding folding)
    : set_{.mesh = whole.mesh, .outlines = {}, .outline_of_rank = whole.outline_of_rank} {
  for (const program::Outline& outline : whole.outlines) add(outline, folding);
}

void Condensed::add(const program::Outline& whole, program::Folding folding) {
  const bool folded = folding == program::Folding::folded;
  const std::vector<bool> awaited = awaited_ops(whole);
  program::Outline& outline = set_.outlines.emplace_back(program::Outline{
      .streams = whole.streams, .ops = {}, .waits = {}, .transfers = whole.transfers});
  std::vector<std::uint32_t>& place = place_.emplace_back();
  place.reserve(whole.ops.size());
  struct Lane {
    std::uint32_t last = 0;             ///< the condensed op that is open
    bool open = false;                  ///< the next op of the lane may join it
    std::vector<std::uint32_t> counts;  ///< by ops of the whole lane: condensed ones up to there
  };
  // Folded programs have one lane, but their waits count by stream.
  std::array<Lane, program::max_streams> lanes;
  for (std::uint32_t op = 0; op < whole.ops.size(); ++op) {
    const OutlineOp& at = whole.ops[op];
    Lane& lane = lanes[folded ? 0 : at.stream];
    const bool communicates = program::communicates(at.kind);
    if (!lane.open || communicates || (!folded && at.wait_count > 0)) {
      OutlineOp& added = outline.ops.emplace_back(at);
      added.wait_begin = static_cast<std::uint32_t>(outline.waits.size());
      added.wait_count = 0;
      if (!folded) {
        for (const program::Wait& wait : whole.waits_of(at)) {
          const std::vector<std::uint32_t>& counts = lanes[wait.stream].counts;
          // A wait for what never comes stays one.
          const bool is_there = wait.count > 0 && wait.count <= counts.size();
          outline.waits.push_back(
              {.stream = wait.stream, .count = is_there ? counts[wait.count - 1] : wait.count});
          ++added.wait_count;
        }
      }
      lane.last = static_cast<std::uint32_t>(outline.ops.size() - 1);
      lane.counts.push_back(lane.counts.empty() ? 1 : lane.counts.back() + 1);
    } else {
      lane.counts.push_back(lane.counts.back());
    }
    lane.open = !communicates && (folded || !awaited[op]);
    place.push_back(lane.last);
  }
}

simulate::Costs Condensed::costs(const simulate::Costs& whole) const {
  simulate::Costs condensed{.tables = {}, .table_of_rank = whole.table_of_rank};
  condensed.tables.resize(whole.tables.size());
  for (std::size_t rank = 0; rank < whole.table_of_rank.size(); ++rank) {
    const std::uint32_t number = whole.table_of_rank[rank];
    auto& table = condensed.tables[number];
    if (!table.empty()) continue;
    const std::uint32_t outline = set_.outline_of_rank[rank];
    table.resize(set_.outlines[outline].ops.size());
    const std::vector<std::uint32_t>& place = place_[outline];
    for (std::size_t op = 0; op < place.size(); ++op) {
      table[place[op]] += whole.tables[number][op];
    }
  }
  return condensed;
}

}  // namespace isoscale::analysis
