// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "program/outline.hpp"
#include "results/records/run_data.hpp"
#include "timeline/timeline.hpp"

/// Hand-made programs and traces for the tests of the analysis.
namespace isoscale::samples {

/// Writes an outline op by op.
class Script {
 public:
  Script& compute(program::StreamId stream = 0) { return add(program::OpKind::gemm, stream); }
  Script& copy(program::StreamId stream = 0) { return add(program::OpKind::copy, stream); }
  Script& op(program::OpKind kind, program::StreamId stream = 0) { return add(kind, stream); }
  Script& all_reduce(mesh::AxisSet axes, program::StreamId stream = 0) {
    add(program::OpKind::all_reduce, stream);
    outline_.ops.back().axes = axes;
    outline_.ops.back().bytes = 64;
    return *this;
  }
  /// One message to or from the neighbour `offset` along pp, as an exchange of its own.
  Script& send(int offset, program::StreamId stream = 0) {
    return exchange(program::Direction::send, offset, stream);
  }
  Script& receive(int offset, program::StreamId stream = 0) {
    return exchange(program::Direction::receive, offset, stream);
  }
  /// The op just added waits for the first `count` ops of `stream`.
  Script& after(program::StreamId stream, std::uint32_t count) {
    program::OutlineOp& op = outline_.ops.back();
    if (op.wait_count == 0) op.wait_begin = static_cast<std::uint32_t>(outline_.waits.size());
    ++op.wait_count;
    outline_.waits.push_back({.stream = stream, .count = count});
    return *this;
  }
  [[nodiscard]] program::Outline outline() const {
    program::Outline result = outline_;
    result.streams = {"compute", "second", "third"};
    return result;
  }

 private:
  Script& add(program::OpKind kind, program::StreamId stream) {
    program::OutlineOp& op = outline_.ops.emplace_back();
    op.kind = kind;
    op.stream = stream;
    return *this;
  }
  Script& exchange(program::Direction direction, int offset, program::StreamId stream) {
    add(program::OpKind::exchange, stream);
    program::OutlineOp& op = outline_.ops.back();
    op.axes = mesh::Axis::pp;
    op.bytes = 64;
    op.transfer_begin = static_cast<std::uint32_t>(outline_.transfers.size());
    op.transfer_count = 1;
    outline_.transfers.push_back(
        {.direction = direction, .axis = mesh::Axis::pp, .offset = offset, .bytes = 64});
    return *this;
  }

  program::Outline outline_;
};

/// A rank's step from begin to end, with one (start, end) per op; nanoseconds.
inline timeline::StepTrace trace(int rank, std::pair<int, int> step,
                                 const std::vector<std::pair<int, int>>& spans) {
  timeline::StepTrace result{.rank = rank,
                             .step = 0,
                             .begin = units::Nanoseconds{step.first},
                             .end = units::Nanoseconds{step.second},
                             .spans = {}};
  for (const auto& [start, end] : spans) {
    result.spans.push_back({.op = static_cast<std::uint32_t>(result.spans.size()),
                            .start = units::Nanoseconds{start},
                            .end = units::Nanoseconds{end}});
  }
  return result;
}

/// A step of all ranks from begin to end, with the (start, end) of each op; spans[rank].
inline timeline::Timeline step(std::pair<int, int> from_to,
                               const std::vector<std::vector<std::pair<int, int>>>& spans) {
  timeline::Timeline result;
  for (const auto& of_rank : spans) {
    result.ranks.push_back(trace(static_cast<int>(result.ranks.size()), from_to, of_rank));
  }
  return result;
}

/// A point with one outline per rank, aligned clocks, and one traced step.
inline results::PointData point(const mesh::Shape& shape, const std::vector<Script>& ranks,
                                timeline::Timeline step) {
  results::PointData result;
  result.mesh = shape;
  result.ranks = shape.size();
  result.outline.mesh = shape;
  for (const Script& script : ranks) {
    result.outline.outline_of_rank.push_back(
        static_cast<std::uint32_t>(result.outline.outlines.size()));
    result.outline.outlines.push_back(script.outline());
  }
  result.clock_offset.assign(ranks.size(), 0.0);
  result.clock_error.assign(ranks.size(), 0.0);
  result.traces.push_back(std::move(step));
  return result;
}

}  // namespace isoscale::samples
