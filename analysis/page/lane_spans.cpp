// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/lane_spans.hpp"

#include <algorithm>
#include <tuple>

namespace isoscale::analysis {
namespace {

using program::OpKind;
using timeline::IntervalSet;
using units::Nanoseconds;

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
  if (a.stream != b.stream || a.place.phase != b.place.phase) return false;
  if (alike != Alike::class_alone && a.place.microbatch != b.place.microbatch) return false;
  if (alike == Alike::kind_and_microbatch) return a.op == b.op;
  return alike == Alike::microbatch || class_of(a.op) == class_of(b.op);
}

/// When a rank does what in its step, each moment in one of these at most.
struct Uses {
  IntervalSet compute, copies, exposed, gap;
};

Uses uses_of(const std::vector<LaneSpan>& spans, const timeline::Interval& step) {
  const auto times_of = [&](LaneOp what) {
    std::vector<timeline::Interval> times;
    for (const LaneSpan& span : spans) {
      if (class_of(span.op) == static_cast<std::uint8_t>(what)) {
        times.push_back({.begin = span.start, .end = span.end});
      }
    }
    return timeline::normalise(std::move(times));
  };
  IntervalSet left{step};
  const auto take = [&](LaneOp what) {
    const IntervalSet times = times_of(what);
    IntervalSet taken = timeline::intersect(left, times);
    left = timeline::subtract(left, times);
    return taken;
  };
  Uses uses;
  uses.compute = take(LaneOp::compute);
  uses.copies = take(LaneOp::copies);
  uses.exposed = take(LaneOp::communication);
  uses.gap = std::move(left);
  return uses;
}

}  // namespace

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
                     .end = end,
                     .busy = end - start});
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
    // What overlaps has damaged times: it stays as it is, for sums of times to hold.
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
    last.busy += span.busy;
    last.merged += span.merged;
    last.op = common_op(last.op, span.op);
    if (last.place.layer != span.place.layer) last.place.layer = -1;
    if (last.place.microbatch != span.place.microbatch) last.place.microbatch = -1;
  }
  return result;
}

std::vector<LaneIdle> idle_of(const std::vector<LaneSpan>& spans, const timeline::Interval& step) {
  const Uses uses = uses_of(spans, step);
  std::vector<LaneIdle> idle;
  for (const auto& at : uses.exposed) {
    idle.push_back({.kind = LaneIdle::Kind::exposed, .time = at});
  }
  for (const auto& at : uses.gap) idle.push_back({.kind = LaneIdle::Kind::gap, .time = at});
  std::ranges::sort(idle, {}, [](const LaneIdle& at) { return at.time.begin; });
  return idle;
}

LaneTotals totals_of(const std::vector<LaneSpan>& spans, const timeline::Interval& step) {
  const Uses uses = uses_of(spans, step);
  return {.step = step.end - step.begin,
          .compute = timeline::total(uses.compute),
          .copies = timeline::total(uses.copies),
          .exposed = timeline::total(uses.exposed),
          .gap = timeline::total(uses.gap)};
}

}  // namespace isoscale::analysis
