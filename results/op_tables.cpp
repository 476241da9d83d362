// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <map>

#include "results/field_visitors.hpp"
#include "results/point_tables.hpp"

namespace isoscale::results {

namespace {

using ShapeRows = std::map<program::GemmShape, std::int32_t>;

/// Returns the row of a shape; adds one for a new shape.
std::int32_t row_of(OpTable& table, ShapeRows& rows, const program::GemmShape& shape) {
  if (shape == program::GemmShape{}) return -1;
  const auto [row, added] = rows.try_emplace(shape, static_cast<std::int32_t>(rows.size()));
  if (added) {
    table.gemm_m.push_back(shape.m);
    table.gemm_n.push_back(shape.n);
    table.gemm_k.push_back(shape.k);
    table.gemm_batch.push_back(shape.batch);
  }
  return row->second;
}

void append(OpTable& table, ShapeRows& shapes, const program::Outline& outline) {
  table.stream_names.insert(table.stream_names.end(), outline.streams.begin(),
                            outline.streams.end());
  for (const program::OutlineOp& op : outline.ops) {
    table.kind.push_back(static_cast<std::uint8_t>(op.kind));
    table.stream.push_back(op.stream);
    table.phase.push_back(static_cast<std::uint8_t>(op.place.phase));
    table.layer.push_back(op.place.layer);
    table.microbatch.push_back(op.place.microbatch);
    table.flop.push_back(op.flop);
    table.bytes.push_back(op.bytes);
    table.axes.push_back(op.axes.bits());
    table.wait_count.push_back(op.wait_count);
    table.transfer_count.push_back(op.transfer_count);
    table.gemm_shape.push_back(row_of(table, shapes, op.gemm));
    for (const program::Wait& wait : outline.waits_of(op)) {
      table.wait_stream.push_back(wait.stream);
      table.wait_ops.push_back(wait.count);
    }
    for (const program::OutlineTransfer& transfer : outline.transfers_of(op)) {
      table.transfer_direction.push_back(static_cast<std::uint8_t>(transfer.direction));
      table.transfer_axis.push_back(static_cast<std::uint8_t>(transfer.axis));
      table.transfer_offset.push_back(transfer.offset);
      table.transfer_bytes.push_back(transfer.bytes);
    }
  }
  table.op_begin.push_back(table.kind.size());
  table.stream_begin.push_back(table.stream_names.size());
}

void check_columns(const OpTable& t) {
  require_lengths(
      {t.kind.size(), t.stream.size(), t.phase.size(), t.layer.size(), t.microbatch.size(),
       t.flop.size(), t.bytes.size(), t.axes.size(), t.wait_count.size(), t.transfer_count.size()},
      "the columns of the op table differ in length");
  require_lengths({t.wait_stream.size(), t.wait_ops.size()},
                  "the columns of the ops' waits differ in length");
  require_lengths({t.transfer_direction.size(), t.transfer_axis.size(), t.transfer_offset.size(),
                   t.transfer_bytes.size()},
                  "the columns of the ops' transfers differ in length");
  if (!t.gemm_shape.empty()) {  // older files have none
    require_lengths({t.kind.size(), t.gemm_shape.size()},
                    "the op table's 'gemm_shape' differs in length");
  }
  require_lengths({t.gemm_m.size(), t.gemm_n.size(), t.gemm_k.size(), t.gemm_batch.size()},
                  "the columns of the ops' gemm shapes differ in length");
  require_lengths({t.op_begin.size(), t.stream_begin.size()},
                  "the op table's outlines differ in number");
  require_offsets(t.op_begin, t.kind.size(), "the op table's 'op_begin' is out of order");
  require_offsets(t.stream_begin, t.stream_names.size(),
                  "the op table's 'stream_begin' is out of order");
  for (const std::uint32_t outline : t.outline_of_rank) {
    require(outline + std::size_t{1} < t.op_begin.size(), "a rank's outline does not exist");
  }
}

/// The positions in the lists of waits and transfers while outlines are rebuilt in op order.
struct Cursor {
  std::size_t wait = 0, transfer = 0;
};

program::GemmShape shape_of(const OpTable& table, std::size_t op) {
  if (table.gemm_shape.empty() || table.gemm_shape[op] < 0) return {};
  const auto row = static_cast<std::size_t>(table.gemm_shape[op]);
  require(row < table.gemm_m.size(), "an op has a gemm shape that does not exist");
  return {.m = table.gemm_m[row],
          .n = table.gemm_n[row],
          .k = table.gemm_k[row],
          .batch = table.gemm_batch[row]};
}

void append_op(program::Outline& outline, const OpTable& table, std::size_t row, Cursor& cursor) {
  require(table.stream[row] < outline.streams.size(), "an op is on a stream that does not exist");
  require(table.wait_count[row] <= table.wait_ops.size() - cursor.wait &&
              table.transfer_count[row] <= table.transfer_bytes.size() - cursor.transfer,
          "ops have more waits or transfers than are stored");
  require((table.axes[row] & ~mesh::every_axis.bits()) == 0, "an op's group has unknown axes");
  program::OutlineOp op{.kind = static_cast<program::OpKind>(table.kind[row]),
                        .stream = table.stream[row],
                        .place = {.phase = static_cast<program::Phase>(table.phase[row]),
                                  .layer = table.layer[row],
                                  .microbatch = table.microbatch[row]},
                        .flop = table.flop[row],
                        .bytes = table.bytes[row],
                        .axes = mesh::AxisSet::from_bits(table.axes[row]),
                        .gemm = shape_of(table, row),
                        .wait_begin = static_cast<std::uint32_t>(outline.waits.size()),
                        .wait_count = table.wait_count[row],
                        .transfer_begin = static_cast<std::uint32_t>(outline.transfers.size()),
                        .transfer_count = table.transfer_count[row]};
  for (std::uint32_t count = 0; count < op.wait_count; ++count, ++cursor.wait) {
    require(table.wait_stream[cursor.wait] < outline.streams.size(),
            "an op waits for a stream that does not exist");
    outline.waits.push_back(
        {.stream = table.wait_stream[cursor.wait], .count = table.wait_ops[cursor.wait]});
  }
  for (std::uint32_t count = 0; count < op.transfer_count; ++count, ++cursor.transfer) {
    outline.transfers.push_back(
        {.direction = static_cast<program::Direction>(table.transfer_direction[cursor.transfer]),
         .axis = static_cast<mesh::Axis>(table.transfer_axis[cursor.transfer]),
         .offset = table.transfer_offset[cursor.transfer],
         .bytes = table.transfer_bytes[cursor.transfer]});
  }
  outline.ops.push_back(op);
}

/// Throws if an op waits for more ops of a stream than come before it.
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

OpTable to_table(const program::OutlineSet& set) {
  OpTable table;
  table.outline_of_rank = set.outline_of_rank;
  table.op_begin.push_back(0);
  table.stream_begin.push_back(0);
  ShapeRows shapes;
  for (const program::Outline& outline : set.outlines) append(table, shapes, outline);
  return table;
}

program::OutlineSet to_outlines(const OpTable& table, const mesh::Shape& mesh) {
  check_columns(table);
  program::OutlineSet set{.mesh = mesh, .outlines = {}, .outline_of_rank = table.outline_of_rank};
  Cursor cursor;
  for (std::size_t index = 0; index + 1 < table.op_begin.size(); ++index) {
    program::Outline outline;
    for (std::uint64_t at = table.stream_begin[index]; at < table.stream_begin[index + 1]; ++at) {
      outline.streams.push_back(table.stream_names[at]);
    }
    require(outline.streams.size() <= program::max_streams, "a rank has too many streams");
    for (std::uint64_t row = table.op_begin[index]; row < table.op_begin[index + 1]; ++row) {
      append_op(outline, table, row, cursor);
    }
    check_waits(outline);
    set.outlines.push_back(std::move(outline));
  }
  require(cursor.wait == table.wait_ops.size() && cursor.transfer == table.transfer_bytes.size(),
          "the op table has waits or transfers that belong to no op");
  return set;
}

TraceTable to_table(const std::vector<timeline::Timeline>& timelines) {
  TraceTable table;
  table.span_begin.push_back(0);
  for (std::size_t index = 0; index < timelines.size(); ++index) {
    for (const timeline::StepTrace& trace : timelines[index].ranks) {
      table.timeline.push_back(static_cast<std::uint32_t>(index));
      table.rank.push_back(static_cast<std::uint32_t>(trace.rank));
      table.step.push_back(trace.step);
      table.begin.push_back(trace.begin.value());
      table.end.push_back(trace.end.value());
      for (const timeline::Span& span : trace.spans) {
        table.span_op.push_back(span.op);
        table.span_start.push_back(span.start.value());
        table.span_end.push_back(span.end.value());
      }
      table.span_begin.push_back(table.span_op.size());
    }
  }
  return table;
}

std::vector<timeline::Timeline> to_timelines(const TraceTable& t) {
  require_lengths({t.timeline.size(), t.rank.size(), t.step.size(), t.begin.size(), t.end.size(),
                   t.span_begin.size() - (t.span_begin.empty() ? 0 : 1)},
                  "the columns of the traces differ in length");
  require_lengths({t.span_op.size(), t.span_start.size(), t.span_end.size()},
                  "the columns of the spans differ in length");
  require_offsets(t.span_begin, t.span_op.size(), "the traces' 'span_begin' is out of order");
  std::vector<timeline::Timeline> timelines;
  for (std::size_t row = 0; row < t.timeline.size(); ++row) {
    require(t.rank[row] <= 0x7FFFFFFFU, "a trace is of a rank that does not exist");
    if (row == 0 || t.timeline[row] != t.timeline[row - 1]) timelines.emplace_back();
    timeline::StepTrace trace{.rank = static_cast<int>(t.rank[row]),
                              .step = t.step[row],
                              .begin = units::Nanoseconds{t.begin[row]},
                              .end = units::Nanoseconds{t.end[row]},
                              .spans = {}};
    trace.spans.reserve(t.span_begin[row + 1] - t.span_begin[row]);
    for (std::uint64_t at = t.span_begin[row]; at < t.span_begin[row + 1]; ++at) {
      trace.spans.push_back({.op = t.span_op[at],
                             .start = units::Nanoseconds{t.span_start[at]},
                             .end = units::Nanoseconds{t.span_end[at]}});
    }
    timelines.back().ranks.push_back(std::move(trace));
  }
  return timelines;
}

}  // namespace isoscale::results
