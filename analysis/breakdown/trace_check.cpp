// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/trace_check.hpp"

#include <fmt/format.h>
#include <cmath>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "analysis/point_facts.hpp"

namespace isoscale::analysis {
namespace {

/// A wait is for one op at least.
bool wait_is_sound(const program::Wait& wait) {
  return wait.stream < program::max_streams && wait.count > 0;
}

bool transfer_is_sound(const program::OutlineTransfer& transfer) {
  return static_cast<std::size_t>(transfer.axis) < mesh::axis_count &&
         transfer.offset != std::numeric_limits<std::int32_t>::min();
}

bool op_is_sound(const program::Outline& outline, const program::OutlineOp& op) {
  const auto lies_in = [](std::uint64_t begin, std::uint64_t count, std::size_t size) {
    return begin + count <= size;
  };
  return static_cast<std::size_t>(op.kind) < program::op_kind_count &&
         op.stream < program::max_streams && op.axes.bits() <= mesh::every_axis.bits() &&
         lies_in(op.wait_begin, op.wait_count, outline.waits.size()) &&
         lies_in(op.transfer_begin, op.transfer_count, outline.transfers.size());
}

bool outline_is_sound(const program::Outline& outline) {
  return std::ranges::all_of(outline.waits, wait_is_sound) &&
         std::ranges::all_of(outline.transfers, transfer_is_sound) &&
         std::ranges::all_of(outline.ops, [&outline](const program::OutlineOp& op) {
           return op_is_sound(outline, op);
         });
}

/// Within these, no sum or difference of two times overflows.
bool time_is_sound(units::Nanoseconds time) {
  constexpr std::int64_t limit = std::int64_t{1} << 61U;
  return -limit <= time.value() && time.value() <= limit;
}

/// Ten days: the lengths of many steps add up without overflow.
constexpr units::Nanoseconds longest_step{std::int64_t{864'000} * 1'000'000'000};

}  // namespace

std::string outline_problem(const results::PointData& point) {
  const program::OutlineSet& set = point.outline;
  if (point.ranks <= 0 || set.mesh.size() != point.ranks ||
      std::cmp_not_equal(set.outline_of_rank.size(), point.ranks)) {
    return fmt::format("the op table covers {} of {} ranks", set.outline_of_rank.size(),
                       point.ranks);
  }
  for (const std::uint32_t outline : set.outline_of_rank) {
    if (outline >= set.outlines.size()) return "a rank's op table is missing";
  }
  if (!std::ranges::all_of(set.outlines, outline_is_sound)) return "the op table is damaged";
  return "";
}

std::string missing_traces(const results::PointData& point) {
  return point.traces.empty() ? "no step was traced" : outline_problem(point);
}

TraceState check_trace(const results::PointData& point, const timeline::StepTrace& trace) {
  if (trace.rank < 0 || trace.rank >= point.ranks) return TraceState::broken;
  const program::Outline& outline = point.outline.of(trace.rank);
  if (trace.spans.size() != outline.ops.size()) return TraceState::broken;
  if (!time_is_sound(trace.begin) || !time_is_sound(trace.end) || trace.end <= trace.begin) {
    return TraceState::broken;
  }
  if (trace.end - trace.begin > longest_step) return TraceState::broken;
  for (std::size_t op = 0; op < trace.spans.size(); ++op) {
    const timeline::Span& span = trace.spans[op];
    if (span.op != op || !time_is_sound(span.start) || !time_is_sound(span.end)) {
      return TraceState::broken;
    }
  }
  return TraceState::usable;
}

/// Seconds; a clock that may be off by as much is not aligned.
constexpr double useless_error = 1e3;

bool aligned(const results::PointData& point, int rank) {
  if (point.ranks == 1) return true;
  const auto at = static_cast<std::size_t>(rank);
  return at < point.clock_offset.size() && std::isfinite(point.clock_offset[at]) &&
         at < point.clock_error.size() && std::isfinite(point.clock_error[at]) &&
         point.clock_error[at] >= 0 && point.clock_error[at] < useless_error;
}

bool step_counts(const results::PointData& point, const timeline::Timeline& step) {
  return std::ranges::all_of(step.ranks, [&point](const timeline::StepTrace& trace) {
    return step_counts(point, trace.step);
  });
}

bool step_counts(const results::PointData& point, std::uint32_t step) {
  const bool is_dropped = step < point.dropped.size() && point.dropped[step] != 0;
  return !is_dropped && !std::cmp_less(step, point.warm_up_steps);
}

std::string rank_list(const results::PointData& point, const std::set<int>& ranks) {
  constexpr std::size_t most_ranges = 4;
  std::vector<int> shown = world_ranks(point, ranks);
  std::ranges::sort(shown);
  std::vector<std::pair<int, int>> ranges;
  for (const int rank : shown) {
    if (!ranges.empty() && ranges.back().second + 1 == rank) {
      ranges.back().second = rank;
    } else {
      ranges.emplace_back(rank, rank);
    }
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t left = ranks.size();
  for (std::size_t i = 0; i < std::min(ranges.size(), most_ranges); ++i) {
    const auto [first, last] = ranges[i];
    text += fmt::format("{}{}", i == 0 ? "" : ", ", first);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? ", " : "-", last);
    left -= static_cast<std::size_t>(last - first) + 1;
  }
  if (left > 0) text += fmt::format(" and {} more", left);
  return text;
}

}  // namespace isoscale::analysis
