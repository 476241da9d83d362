// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/step_costs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "analysis/breakdown/trace_check.hpp"
#include "analysis/statistics/statistics.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;

/// Op times of one rank added up over the ops of a step; seconds.
struct Sums {
  double gemm = 0, other = 0;
  [[nodiscard]] double all() const { return gemm + other; }
};

void add(const program::OutlineOp& op, units::Nanoseconds time, Sums& sums) {
  if (program::communicates(op.kind) || op.kind == OpKind::copy) return;
  (op.kind == OpKind::gemm ? sums.gemm : sums.other) += units::to_seconds(time).value();
}

/// Of one rank over its traced steps: each op's median, and its mean.
struct TracedSums {
  Sums median, mean;
};

TracedSums sum_up(const program::Outline& outline,
                  const std::vector<const timeline::StepTrace*>& steps) {
  TracedSums sums;
  std::vector<units::Nanoseconds> times(steps.size());
  for (std::size_t op = 0; op < outline.ops.size(); ++op) {
    units::Nanoseconds sum;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const timeline::Span& span = steps[i]->spans[op];
      times[i] = std::max(units::Nanoseconds{0}, span.end - span.start);
      sum += times[i];
    }
    add(outline.ops[op], timeline::median(times), sums.median);
    add(outline.ops[op], sum / static_cast<std::int64_t>(steps.size()), sums.mean);
  }
  return sums;
}

std::map<int, TracedSums> traced_sums(const results::PointData& point) {
  std::map<int, std::vector<const timeline::StepTrace*>> of_rank;
  for (const timeline::Timeline& step : point.traces) {
    if (!step_counts(point, step)) continue;
    for (const timeline::StepTrace& trace : step.ranks) {
      if (check_trace(point, trace) == TraceState::usable) of_rank[trace.rank].push_back(&trace);
    }
  }
  std::map<int, TracedSums> sums;
  for (const auto& [rank, steps] : of_rank) sums[rank] = sum_up(point.outline.of(rank), steps);
  return sums;
}

std::map<int, Sums> solo_sums(const results::PointData& point) {
  std::map<int, Sums> of_rank;
  for (const results::SoloTimes& solo : point.solo_times) {
    if (solo.rank < 0 || solo.rank >= point.ranks) continue;
    const program::Outline& outline = point.outline.of(solo.rank);
    if (solo.op.size() != outline.ops.size()) continue;
    Sums sums;
    for (std::size_t op = 0; op < solo.op.size(); ++op) add(outline.ops[op], solo.op[op], sums);
    if (sums.gemm > 0) of_rank[solo.rank] = sums;
  }
  return of_rank;
}

/// Each rank's value replaced by that of the typical rank with the same program; their mean.
template <class Part, class Value>
double typical(const results::PointData& point, const std::map<int, Part>& of_rank,
               const Value& value) {
  std::map<std::uint32_t, std::vector<double>> of_program;
  for (const auto& [rank, part] : of_rank) {
    of_program[point.outline.outline_of_rank[static_cast<std::size_t>(rank)]].push_back(
        value(part));
  }
  double sum = 0;
  for (const auto& [program, values] : of_program) {
    // Half of a straggler's excess would pass for typical of two.
    const double middle =
        values.size() == 2 ? std::min(values[0], values[1]) : median(values).value_or(0);
    sum += middle * static_cast<double>(values.size());
  }
  return sum / static_cast<double>(of_rank.size());
}

void divide_gemms(const results::PointData& point, const BreakdownResult& breakdown,
                  const std::map<int, TracedSums>& traced, StepCosts& costs) {
  if (breakdown.mean->hidden_communication == 0) {
    costs.gemm_alone = costs.gemm;
    costs.gemm_overlap = 0;
    return;
  }
  const std::map<int, Sums> solo = solo_sums(point);
  const auto rank_of = [](const auto& at) { return at.first; };
  if (!std::ranges::equal(traced, solo, {}, rank_of, rank_of)) return;
  costs.gemm_alone = typical(point, solo, [](const Sums& at) { return at.gemm; });
  costs.gemm_overlap = costs.gemm - *costs.gemm_alone;
}

}  // namespace

std::optional<StepCosts> step_costs(const results::PointData& point,
                                    const BreakdownResult& breakdown) {
  if (!breakdown.mean) return std::nullopt;
  const Breakdown& mean = *breakdown.mean;
  const std::map<int, TracedSums> traced = traced_sums(point);
  if (traced.empty()) return std::nullopt;
  StepCosts costs{
      .gemm = typical(point, traced, [](const TracedSums& at) { return at.median.gemm; }),
      .copies = mean.copies,
      .transfer = {},
      .bubble = breakdown.schedule_bubble.value_or(mean.bubble),
      .imbalance = std::nullopt,
      .noise = std::nullopt,
      .gap = mean.gap,
      .other = mean.other};
  divide_gemms(point, breakdown, traced, costs);

  double medians = 0, means = 0;
  for (const auto& [rank, sums] : traced) {
    medians += sums.median.all() / static_cast<double>(traced.size());
    means += sums.mean.all() / static_cast<double>(traced.size());
  }
  const double other = typical(point, traced, [](const TracedSums& at) { return at.median.other; });
  costs.uneven = medians - costs.gemm - other;
  costs.hiccups = means - medians;
  // Less what ops on two streams take at once.
  costs.other_compute = other + mean.compute - means;

  for (const auto& [axes, parts] : breakdown.by_axes) costs.transfer[axes] = parts.transfer;
  if (!breakdown.wait_known) {
    costs.communication = mean.transfer + mean.wait + mean.bubble;
    costs.bubble = 0;
    costs.waiting = costs.uneven + costs.hiccups;
    return costs;
  }
  costs.uneven += mean.bubble - costs.bubble;
  costs.waiting = costs.uneven + costs.hiccups + mean.wait;
  if (breakdown.waits) {
    costs.imbalance = costs.uneven + breakdown.waits->imbalance;
    costs.noise = costs.hiccups + breakdown.waits->noise;
  }
  return costs;
}

}  // namespace isoscale::analysis
