// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/step_costs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/breakdown/trace_check.hpp"
#include "analysis/statistics/statistics.hpp"

namespace isoscale::analysis {
namespace {

using program::OpKind;

/// Op times of one rank added up; seconds a step.
struct Sums {
  double gemm = 0, other = 0;
  double steps = 0;
};

void add(const program::OutlineOp& op, units::Nanoseconds time, Sums& sums) {
  if (program::communicates(op.kind) || op.kind == OpKind::copy) return;
  (op.kind == OpKind::gemm ? sums.gemm : sums.other) += units::to_seconds(time).value();
}

/// Of the traced steps that count, by rank.
std::map<int, Sums> traced_sums(const results::PointData& point) {
  std::map<int, Sums> of_rank;
  for (const timeline::Timeline& step : point.traces) {
    if (!step_counts(point, step)) continue;
    for (const timeline::StepTrace& trace : step.ranks) {
      if (check_trace(point, trace) != TraceState::usable) continue;
      const program::Outline& outline = point.outline.of(trace.rank);
      Sums& sums = of_rank[trace.rank];
      for (const timeline::Span& span : trace.spans) {
        add(outline.ops[span.op], std::max(units::Nanoseconds{0}, span.end - span.start), sums);
      }
      ++sums.steps;
    }
  }
  for (auto& [rank, sums] : of_rank) {
    sums.gemm /= sums.steps;
    sums.other /= sums.steps;
  }
  return of_rank;
}

std::map<int, Sums> solo_sums(const results::PointData& point) {
  std::map<int, Sums> of_rank;
  for (const results::SoloTimes& solo : point.solo_times) {
    if (solo.rank < 0 || solo.rank >= point.ranks) continue;
    const program::Outline& outline = point.outline.of(solo.rank);
    if (solo.op.size() != outline.ops.size()) continue;
    for (std::size_t op = 0; op < solo.op.size(); ++op) {
      add(outline.ops[op], solo.op[op], of_rank[solo.rank]);
    }
  }
  return of_rank;
}

/// Each rank's value replaced by the median of the ranks with the same program; their mean.
double typical(const results::PointData& point, const std::map<int, double>& of_rank) {
  std::map<std::uint32_t, std::vector<double>> of_program;
  for (const auto& [rank, value] : of_rank) {
    of_program[point.outline.outline_of_rank[static_cast<std::size_t>(rank)]].push_back(value);
  }
  double sum = 0;
  for (const auto& [program, values] : of_program) {
    sum += median(values).value_or(0) * static_cast<double>(values.size());
  }
  return sum / static_cast<double>(of_rank.size());
}

double typical(const results::PointData& point, const std::map<int, Sums>& of_rank,
               double Sums::*part) {
  std::map<int, double> values;
  for (const auto& [rank, sums] : of_rank) values[rank] = sums.*part;
  return typical(point, values);
}

}  // namespace

std::optional<StepCosts> step_costs(const results::PointData& point,
                                    const BreakdownResult& breakdown) {
  if (!breakdown.mean) return std::nullopt;
  const Breakdown& mean = *breakdown.mean;
  StepCosts costs{.copies = mean.copies,
                  .transfer = {},
                  .bubble = mean.bubble,
                  .imbalance = std::nullopt,
                  .noise = std::nullopt,
                  .gap = mean.gap,
                  .other = mean.other};
  std::map<int, double> compute;
  for (std::size_t i = 0; i < breakdown.ranks.size(); ++i) {
    compute[breakdown.ranks[i]] = breakdown.of_rank[i].compute;
  }
  const double typical_compute = typical(point, compute);
  const std::map<int, Sums> traced = traced_sums(point);
  costs.gemm = typical(point, traced, &Sums::gemm);
  // Also what GEMMs and other ops on two streams have less than their sum.
  costs.other_compute = typical_compute - costs.gemm;
  const std::map<int, Sums> solo = solo_sums(point);
  const bool same_ranks = std::ranges::equal(
      traced, solo, {}, [](const auto& at) { return at.first; },
      [](const auto& at) { return at.first; });
  if (same_ranks) {
    costs.gemm_alone = typical(point, solo, &Sums::gemm);
    costs.gemm_overlap = costs.gemm - *costs.gemm_alone;
  }
  costs.other += mean.transfer;  // less what stands below: nothing, but for rounding
  for (const auto& [axes, parts] : breakdown.by_axes) {
    costs.transfer[axes] = parts.transfer;
    costs.other -= parts.transfer;
  }
  const double uneven = mean.compute - typical_compute;
  costs.waiting = uneven + mean.wait;
  if (breakdown.waits) {
    costs.imbalance = uneven + breakdown.waits->imbalance;
    costs.noise = breakdown.waits->noise;
  }
  return costs;
}

}  // namespace isoscale::analysis
