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

enum class What : std::uint8_t { work, communication };

IntervalSet times_of(const std::vector<LaneSpan>& spans, What what) {
  constexpr auto communication = static_cast<std::uint8_t>(LaneOp::communication);
  std::vector<timeline::Interval> times;
  for (const LaneSpan& span : spans) {
    if ((class_of(span.op) == communication) == (what == What::communication)) {
      times.push_back({.begin = span.start, .end = span.end});
    }
  }
  return timeline::normalise(std::move(times));
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
  const IntervalSet free = timeline::subtract({step}, times_of(spans, What::work));
  const IntervalSet communication = times_of(spans, What::communication);
  std::vector<LaneIdle> idle;
  for (const auto& at : timeline::intersect(free, communication)) {
    idle.push_back({.kind = LaneIdle::Kind::waiting, .time = at});
  }
  for (const auto& at : timeline::subtract(free, communication)) {
    idle.push_back({.kind = LaneIdle::Kind::gap, .time = at});
  }
  std::ranges::sort(idle, {}, [](const LaneIdle& at) { return at.time.begin; });
  return idle;
}

}  // namespace isoscale::analysis
