// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "results/records/op_records.hpp"

#include <cstddef>
#include <map>
#include <utility>

#include "results/records/stored_values.hpp"

namespace isoscale::results {

namespace {

using ShapeRows = std::map<program::GemmShape, std::int32_t>;

/// Returns the row of a shape, which is added if it is new; -1 for the empty shape.
std::int32_t row_of(StoredOps& stored, ShapeRows& rows, const program::GemmShape& shape) {
  if (shape == program::GemmShape{}) return -1;
  const auto [row, added] = rows.try_emplace(shape, static_cast<std::int32_t>(rows.size()));
  if (added) stored.shapes.push_back(shape);
  return row->second;
}

/// The positions in the lists of waits and transfers while outlines are rebuilt in op order.
struct Cursor {
  std::size_t wait = 0, transfer = 0;
};

void append_op(program::Outline& outline, const StoredOps& stored, const StoredOp& row,
               Cursor& cursor) {
  program::OutlineOp op = row.op;
  require(op.stream < outline.streams.size(), "an op is on a stream that does not exist");
  require(op.wait_count <= stored.waits.size() - cursor.wait &&
              op.transfer_count <= stored.transfers.size() - cursor.transfer,
          "ops have more waits or transfers than are stored");
  if (row.gemm_shape >= 0) {
    const auto shape = static_cast<std::size_t>(row.gemm_shape);
    require(shape < stored.shapes.size(), "an op has a gemm shape that does not exist");
    op.gemm = stored.shapes[shape];
  }
  op.wait_begin = static_cast<std::uint32_t>(outline.waits.size());
  op.transfer_begin = static_cast<std::uint32_t>(outline.transfers.size());
  for (std::uint32_t count = 0; count < op.wait_count; ++count) {
    const program::Wait& wait = stored.waits[cursor.wait++];
    require(wait.stream < outline.streams.size(), "an op waits for a stream that does not exist");
    outline.waits.push_back(wait);
  }
  for (std::uint32_t count = 0; count < op.transfer_count; ++count) {
    outline.transfers.push_back(stored.transfers[cursor.transfer++]);
  }
  outline.ops.push_back(op);
}

/// Throws base::Error if an op waits for more ops of a stream than come before it.
void check_waits(const program::Outline& outline) {
  std::vector<std::uint64_t> ops_on(outline.streams.size(), 0);
  for (const program::OutlineOp& op : outline.ops) {
    for (const program::Wait& wait : outline.waits_of(op)) {
      require(wait.count <= ops_on[wait.stream], "an op waits for ops that come after it");
    }
    ++ops_on[op.stream];
  }
}

}  // namespace

StoredOps to_stored(const program::OutlineSet& set) {
  StoredOps stored{.outline_of_rank = set.outline_of_rank};
  ShapeRows shapes;
  for (const program::Outline& outline : set.outlines) {
    StoredOutline& row = stored.outlines.emplace_back(StoredOutline{.streams = outline.streams});
    for (const program::OutlineOp& op : outline.ops) {
      row.ops.push_back({.op = op, .gemm_shape = row_of(stored, shapes, op.gemm)});
      const auto waits = outline.waits_of(op);
      stored.waits.insert(stored.waits.end(), waits.begin(), waits.end());
      const auto transfers = outline.transfers_of(op);
      stored.transfers.insert(stored.transfers.end(), transfers.begin(), transfers.end());
    }
  }
  return stored;
}

program::OutlineSet to_outlines(StoredOps stored) {
  program::OutlineSet set{
      .mesh = {}, .outlines = {}, .outline_of_rank = std::move(stored.outline_of_rank)};
  for (const std::uint32_t outline : set.outline_of_rank) {
    require(outline < stored.outlines.size(), "a rank's outline does not exist");
  }
  Cursor cursor;
  for (StoredOutline& row : stored.outlines) {
    program::Outline& outline = set.outlines.emplace_back();
    outline.streams = std::move(row.streams);
    require(outline.streams.size() <= program::max_streams, "a rank has too many streams");
    for (const StoredOp& op : row.ops) append_op(outline, stored, op, cursor);
    check_waits(outline);
  }
  require(cursor.wait == stored.waits.size() && cursor.transfer == stored.transfers.size(),
          "there are waits or transfers that belong to no op");
  return set;
}

std::vector<StoredTrace> to_stored(const std::vector<timeline::Timeline>& timelines) {
  std::vector<StoredTrace> stored;
  for (std::size_t index = 0; index < timelines.size(); ++index) {
    for (const timeline::StepTrace& trace : timelines[index].ranks) {
      stored.push_back({.timeline = static_cast<std::uint32_t>(index),
                        .rank = static_cast<std::uint32_t>(trace.rank),
                        .trace = trace});
    }
  }
  return stored;
}

std::vector<timeline::Timeline> to_timelines(std::vector<StoredTrace> stored) {
  std::vector<timeline::Timeline> timelines;
  for (std::size_t row = 0; row < stored.size(); ++row) {
    StoredTrace& at = stored[row];
    require(at.rank <= 0x7FFFFFFFU, "a trace is of a rank that does not exist");
    if (row == 0 || at.timeline != stored[row - 1].timeline) timelines.emplace_back();
    at.trace.rank = static_cast<int>(at.rank);
    timelines.back().ranks.push_back(std::move(at.trace));
  }
  return timelines;
}

}  // namespace isoscale::results
