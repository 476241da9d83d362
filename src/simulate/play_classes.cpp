// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulate/classes.hpp"
#include "simulate/coarse_play.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::simulate {
namespace {

using timeline::Interval;
using timeline::IntervalSet;
using units::Nanoseconds;

constexpr int most_rounds = 12;
/// Rounds of the stretch by overlap end when a step changes by less than this share.
constexpr double small_change = 1e-4;

using Steady = CoarseSteady;

Steady settled(const program::OutlineSet& set, const Costs& costs) {
  return settle(
      coarsen(set.mesh, set.outlines, set.outline_of_rank, costs.tables, costs.table_of_rank));
}

Nanoseconds whole(double nanoseconds) {
  return Nanoseconds{static_cast<std::int64_t>(std::llround(nanoseconds))};
}

timeline::Timeline step_of(const program::OutlineSet& set, const Costs& costs, const Steady& steady,
                           Record record) {
  if (record == Record::spans) {
    std::vector<Nanoseconds> begin;
    for (const CoarseStep& rank : steady.step) begin.push_back(whole(rank.begin));
    return std::move(simulate(set, costs, {.begin = std::move(begin)}).front());
  }
  timeline::Timeline timeline;
  for (std::size_t rank = 0; rank < steady.step.size(); ++rank) {
    timeline.ranks.push_back({.rank = static_cast<int>(rank),
                              .step = 0,
                              .begin = whole(steady.step[rank].begin),
                              .end = whole(steady.step[rank].end),
                              .spans = {}});
  }
  return timeline;
}

/// What a rank did of one kind. Of communication only the time after the last arrival: who waits
/// moves nothing.
IntervalSet busy(const program::Outline& outline, const timeline::StepTrace& trace,
                 const std::vector<Nanoseconds>& costs, bool (*is_kind)(program::OpKind),
                 bool from_arrival) {
  std::vector<Interval> intervals;
  for (const timeline::Span& span : trace.spans) {
    if (!is_kind(outline.ops[span.op].kind)) continue;
    const Nanoseconds begin = from_arrival ? span.end - costs[span.op] : span.start;
    intervals.push_back({.begin = begin, .end = span.end});
  }
  return timeline::normalise(std::move(intervals));
}

Nanoseconds time_beside(const IntervalSet& others, Interval mine) {
  auto at = std::lower_bound(others.begin(), others.end(), mine.begin,
                             [](const Interval& a, Nanoseconds time) { return a.end <= time; });
  Nanoseconds beside{};
  for (; at != others.end() && at->begin < mine.end; ++at) {
    beside += std::min(at->end, mine.end) - std::max(at->begin, mine.begin);
  }
  return beside;
}

/// A table per class: `costs`, stretched by what ran beside each op in `timeline`, which was played
/// with `played`. An op that takes f times as long beside the other kind does 1/f of its work in a
/// second of it: of b seconds of work, a share s of its time beside, it takes b / (1 - s (1 -
/// 1/f)).
Costs stretched(const program::OutlineSet& set, const Costs& costs, const Costs& played,
                const timeline::Timeline& timeline, const Overlap& overlap) {
  Costs result;
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const program::Outline& outline = set.of(static_cast<int>(rank));
    const timeline::StepTrace& trace = timeline.ranks[rank];
    const std::vector<Nanoseconds>& took = played.tables[played.table_of_rank[rank]];
    const IntervalSet computing = busy(outline, trace, took, program::computes, false);
    const IntervalSet moving = busy(outline, trace, took, program::communicates, true);
    std::vector<Nanoseconds> table = costs.tables[costs.table_of_rank[rank]];
    for (const timeline::Span& span : trace.spans) {
      const program::OpKind kind = outline.ops[span.op].kind;
      const bool communicates = program::communicates(kind);
      if (!communicates && !program::computes(kind)) continue;
      const Interval mine{.begin = communicates ? span.end - took[span.op] : span.start,
                          .end = span.end};
      const double factor = communicates ? overlap.communication : overlap.compute;
      const Nanoseconds beside = time_beside(communicates ? computing : moving, mine);
      if (mine.end <= mine.begin) continue;
      const double share = beside / (mine.end - mine.begin);
      table[span.op] =
          whole(static_cast<double>(table[span.op].value()) / (1 - share * (1 - 1 / factor)));
    }
    result.table_of_rank.push_back(static_cast<std::uint32_t>(result.tables.size()));
    result.tables.push_back(std::move(table));
  }
  return result;
}

/// Halfway: rounds that jump to and fro between two solutions come to rest.
void move_halfway(Costs& costs, const Costs& before) {
  for (std::size_t rank = 0; rank < costs.tables.size(); ++rank) {
    const std::vector<Nanoseconds>& old = before.tables[before.table_of_rank[rank]];
    for (std::size_t op = 0; op < old.size(); ++op) {
      costs.tables[rank][op] = (costs.tables[rank][op] + old[op]) / 2;
    }
  }
}

}  // namespace

ClassStep play_classes(const Classes& classes, const Costs& costs, const Overlap& overlap,
                       Record record) {
  const program::OutlineSet& set = classes.outline;
  ClassStep step{.costs = costs};
  Steady steady = settled(set, costs);
  if (overlap.compute != 1 || overlap.communication != 1) {
    for (int round = 0; round < most_rounds; ++round) {
      const timeline::Timeline timeline = step_of(set, step.costs, steady, Record::spans);
      Costs next = stretched(set, costs, step.costs, timeline, overlap);
      if (round > 1) move_halfway(next, step.costs);
      step.costs = std::move(next);
      const double before = steady.period;
      steady = settled(set, step.costs);
      step.error = before > 0 ? std::abs(steady.period - before) / before : 0;
      if (step.error < small_change) break;
    }
  }
  step.seconds = steady.period * 1e-9;
  step.timeline = step_of(set, step.costs, steady, record);
  return step;
}

void record_spans(const Classes& classes, ClassStep& step) {
  std::vector<Nanoseconds> begin;
  for (const timeline::StepTrace& rank : step.timeline.ranks) begin.push_back(rank.begin);
  step.timeline =
      std::move(simulate(classes.outline, step.costs, {.begin = std::move(begin)}).front());
}

}  // namespace isoscale::simulate
