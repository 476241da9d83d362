// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/timeline_spans.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/breakdown/matched_traces.hpp"

namespace isoscale::analysis::page {
namespace {

using program::OpKind;
using timeline::IntervalSet;
using units::Nanoseconds;

std::vector<LaneStep> usable_steps(const results::PointData& point) {
  std::vector<LaneStep> steps;
  if (!breakdown::missing_traces(point).empty()) return steps;
  std::set<int> broken;
  for (const timeline::Timeline& timeline : point.traces) {
    if (!breakdown::step_counts(point, timeline)) continue;
    breakdown::TracedStep usable = breakdown::usable_step(point, timeline, broken);
    LaneStep step{.step = usable.step, .of = std::move(usable.traces), .length = {}};
    for (const timeline::StepTrace* const trace : step.of) {
      if (trace == nullptr) continue;
      ++step.traced;
      step.length = std::max(step.length, trace->end - trace->begin);
    }
    if (step.traced > 0) steps.push_back(std::move(step));
  }
  return steps;
}

/// Returns the traced rank breakdown.ranks[i] with the largest value(i); absent if none is above 0.
template <class Value>
std::optional<int> largest(const breakdown::BreakdownResult& breakdown, const Value& value) {
  std::optional<int> found;
  double most = 0;
  for (std::size_t i = 0; i < breakdown.ranks.size(); ++i) {
    if (value(i) <= most) continue;
    most = value(i);
    found = breakdown.ranks[i];
  }
  return found;
}

std::uint8_t class_of(std::uint8_t op) {
  if (op >= program::op_kind_count) return op;
  const auto kind = static_cast<OpKind>(op);
  const LaneOp all = program::communicates(kind) ? LaneOp::communication
                     : program::computes(kind)   ? LaneOp::compute
                                                 : LaneOp::copies;
  return static_cast<std::uint8_t>(all);
}

std::uint8_t common_op(std::uint8_t a, std::uint8_t b) {
  if (a == b) return a;
  return class_of(a) == class_of(b) ? class_of(a) : static_cast<std::uint8_t>(LaneOp::mixed);
}

bool are_alike(const LaneSpan& a, const LaneSpan& b, Alike alike) {
  return a.stream == b.stream && a.place.phase == b.place.phase &&
         a.place.microbatch == b.place.microbatch && (alike == Alike::any_kind || a.op == b.op);
}

}  // namespace

std::optional<LaneStep> typical_traced_step(const results::PointData& point) {
  std::vector<LaneStep> steps = usable_steps(point);
  if (steps.empty()) return std::nullopt;
  const std::size_t most = std::ranges::max(steps, {}, &LaneStep::traced).traced;
  std::erase_if(steps, [most](const LaneStep& step) { return step.traced < most; });
  std::ranges::stable_sort(steps, {}, &LaneStep::length);
  // If the number of steps is even, two steps are equally near the median; the faster one is taken.
  return std::move(steps[(steps.size() - 1) / 2]);
}

std::vector<int> lane_ranks(const PointReport& point, const LaneStep& step,
                            const DetailLimits& limits) {
  const results::PointData& data = *point.data;
  std::vector<int> ranks;
  const auto add = [&](std::optional<int> rank, std::size_t most) {
    const bool known = rank && *rank >= 0 && *rank < data.ranks;
    if (!known || ranks.size() >= most || step.of[static_cast<std::size_t>(*rank)] == nullptr) {
      return;
    }
    if (std::ranges::find(ranks, *rank) == ranks.end()) ranks.push_back(*rank);
  };
  for (int stage = 0; data.mesh.pp > 1 && stage < data.mesh.pp; ++stage) {
    add(mesh::rank_at(data.mesh, {.pp = stage}), limits.stages);
  }
  const std::size_t most = std::min(limits.stages, std::max(limits.lanes, ranks.size()));
  add(0, most);
  add(data.ranks - 1, most);
  const breakdown::BreakdownResult& breakdown = point.breakdown;
  add(largest(breakdown, [&](std::size_t i) { return breakdown.of_rank[i].compute; }), most);
  const auto caused = [&](std::size_t i) {
    return breakdown.caused.of_rank.at(static_cast<std::size_t>(breakdown.ranks[i]));
  };
  add(largest(breakdown, caused), most);
  // The ranks of the remaining lanes are spread evenly over the ranks of the point.
  const int others = static_cast<int>(most);
  for (int i = 0; i < others; ++i) add(i * data.ranks / others, most);
  for (int rank = 0; rank < data.ranks && ranks.size() < most; ++rank) add(rank, most);
  return ranks;
}

std::vector<LaneSpan> spans_of(const program::Outline& outline, const timeline::StepTrace& trace,
                               const timeline::Interval& window) {
  std::vector<LaneSpan> spans;
  for (std::size_t i = 0; i < trace.spans.size(); ++i) {
    const program::OutlineOp& op = outline.ops[i];
    const Nanoseconds start = std::clamp(trace.spans[i].start, window.begin, window.end);
    const Nanoseconds end = std::clamp(trace.spans[i].end, window.begin, window.end);
    if (end <= start) continue;
    spans.push_back({.op = static_cast<std::uint8_t>(op.kind),
                     .stream = op.stream,
                     .place = op.place,
                     .start = start,
                     .end = end});
  }
  std::ranges::stable_sort(spans, {}, [](const LaneSpan& span) {
    return std::tuple{span.stream, span.start};
  });
  return spans;
}

std::vector<LaneSpan> merged(const std::vector<LaneSpan>& spans, Alike alike, Nanoseconds tolerance,
                             Nanoseconds enough) {
  std::vector<LaneSpan> result;
  for (const LaneSpan& span : spans) {
    // Spans that overlap have damaged times. They are not merged, since the merged length would
    // differ from the sum of their lengths.
    const bool joins = !result.empty() && are_alike(result.back(), span, alike) &&
                       span.start >= result.back().end &&
                       span.start - result.back().end <= tolerance &&
                       result.back().end - result.back().start < enough;
    if (!joins) {
      result.push_back(span);
      continue;
    }
    LaneSpan& last = result.back();
    last.end = span.end;
    last.merged += span.merged;
    last.op = common_op(last.op, span.op);
    if (last.place.layer != span.place.layer) last.place.layer = -1;
  }
  return result;
}

LaneUse use_of(const std::vector<LaneSpan>& spans, const timeline::Interval& step) {
  std::vector<timeline::Interval> works, communicates;
  for (const LaneSpan& span : spans) {
    const bool is_communication =
        class_of(span.op) == static_cast<std::uint8_t>(LaneOp::communication);
    (is_communication ? communicates : works).push_back({.begin = span.start, .end = span.end});
  }
  const IntervalSet all = timeline::normalise(std::move(communicates));
  const IntervalSet idle = timeline::subtract({step}, timeline::normalise(std::move(works)));
  const IntervalSet exposed = timeline::intersect(idle, all), gap = timeline::subtract(idle, all);
  LaneUse use{.step = step.end - step.begin,
              .exposed = timeline::total(exposed),
              .gap = timeline::total(gap)};
  for (const auto& at : exposed) use.idle.push_back({LaneIdle::Kind::exposed, at.begin, at.end});
  for (const auto& at : gap) use.idle.push_back({LaneIdle::Kind::gap, at.begin, at.end});
  std::ranges::sort(use.idle, {}, &LaneIdle::start);
  return use;
}

}  // namespace isoscale::analysis::page
