// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/pop_factors_and_losses.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

#include "analysis/breakdown/matched_traces.hpp"
#include "statistics/estimate.hpp"
#include "timeline/timeline.hpp"

namespace isoscale::analysis::efficiency {
namespace {

using program::OpKind;

double useful_time(const breakdown::Breakdown& parts) { return parts.compute + parts.copies; }

/// Returns the useful seconds (of compute and copies) of each rank in a step; empty if the value of
/// some rank is not known.
std::vector<double> useful_times(const results::PointData& point,
                                 const breakdown::BreakdownResult& breakdown) {
  std::vector<double> times;
  if (std::cmp_equal(breakdown.ranks.size(), point.ranks)) {
    for (const breakdown::Breakdown& rank : breakdown.of_rank) times.push_back(useful_time(rank));
    return times;
  }
  for (const results::OpSums& step : point.op_sums) {
    const std::vector<double> busy =
        breakdown::busy_seconds(step, static_cast<std::size_t>(point.ranks));
    if (busy.empty()) return {};
    times.resize(busy.size());
    for (std::size_t rank = 0; rank < busy.size(); ++rank) {
      times[rank] += busy[rank] / static_cast<double>(point.op_sums.size());
    }
  }
  return times;
}

/// Returns a point's useful time, work and FLOP; `useful` has the useful seconds of each rank.
UsefulWork work_of(const results::PointData& point, const std::vector<double>& useful) {
  const double flop = std::reduce(point.flop_of_rank.begin(), point.flop_of_rank.end());
  return {.useful = std::reduce(useful.begin(), useful.end()),
          .work = point.work_per_step,
          .flop = std::isfinite(flop) ? flop : 0};
}

void add_scalability(const UsefulWork& mine, const UsefulWork& base, Pop& pop) {
  if (!(mine.work > 0) || !(base.work > 0) || !(mine.useful > 0)) return;
  pop.computation_scalability = (base.useful / base.work) / (mine.useful / mine.work);
  pop.global = pop.parallel * *pop.computation_scalability;
  if (!(mine.flop > 0) || !(base.flop > 0)) return;
  pop.work_scalability = (base.flop / base.work) / (mine.flop / mine.work);
  pop.speed_scalability = *pop.computation_scalability / *pop.work_scalability;
}

/// The times of one rank's compute ops, summed over a step; seconds.
struct ComputeSums {
  double gemm = 0, other = 0;
  [[nodiscard]] double all() const { return gemm + other; }
};

void add(const program::OutlineOp& op, units::Nanoseconds time, ComputeSums& sums) {
  if (!program::computes(op.kind)) return;
  (op.kind == OpKind::gemm ? sums.gemm : sums.other) += units::to_seconds(time).value();
}

/// Sums over one rank's ops: of each op's median time over the traced steps, and of its mean time.
struct TracedSums {
  ComputeSums median, mean;
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
  std::map<int, TracedSums> sums;
  for (const auto& [rank, steps] : breakdown::usable_traces(point))
    sums[rank] = sum_up(point.outline.of(rank), steps);
  return sums;
}

std::map<int, ComputeSums> solo_sums(const results::PointData& point) {
  std::map<int, ComputeSums> of_rank;
  for (const results::SoloTimes& solo : point.solo_times) {
    if (solo.rank < 0 || solo.rank >= point.ranks) continue;
    const program::Outline& outline = point.outline.of(solo.rank);
    if (solo.op.size() != outline.ops.size()) continue;
    ComputeSums sums;
    for (std::size_t op = 0; op < solo.op.size(); ++op) add(outline.ops[op], solo.op[op], sums);
    if (sums.gemm > 0) of_rank[solo.rank] = sums;
  }
  return of_rank;
}

/// Returns the mean over ranks after each rank's value is replaced by that of the typical rank with
/// the same program: the median rank, or the faster one of two.
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
    // The faster one of two ranks is typical, since their median would include half of the time by
    // which a straggler is slower.
    const double middle = values.size() == 2 ? std::min(values[0], values[1])
                                             : statistics::median(values).value_or(0);
    sum += middle * static_cast<double>(values.size());
  }
  return sum / static_cast<double>(of_rank.size());
}

void divide_gemms(const results::PointData& point, const breakdown::BreakdownResult& breakdown,
                  const std::map<int, TracedSums>& traced, StepCosts& costs) {
  if (breakdown.mean->hidden_communication == 0) {
    costs.gemm_alone = costs.gemm;
    costs.gemm_overlap = 0;
    return;
  }
  const std::map<int, ComputeSums> solo = solo_sums(point);
  const auto rank_of = [](const auto& at) { return at.first; };
  if (!std::ranges::equal(traced, solo, {}, rank_of, rank_of)) return;
  costs.gemm_alone = typical(point, solo, [](const ComputeSums& at) { return at.gemm; });
  costs.gemm_overlap = costs.gemm - *costs.gemm_alone;
}

/// The causes explain the loss only if traced and untraced steps differ by at most this share of
/// the measured step.
constexpr double most_untraced = 0.1;

double transfer_of(const StepCosts& costs, mesh::AxisSet axes) {
  const auto found = costs.transfer.find(axes);
  return found == costs.transfer.end() ? 0 : found->second;
}

/// Returns the sum of transfers, bubble and waiting.
double together(const StepCosts& costs) {
  if (costs.communication) return *costs.communication + costs.waiting;
  double sum = costs.bubble + costs.waiting;
  for (const auto& [axes, seconds] : costs.transfer) sum += seconds;
  return sum;
}

/// Returns the waiting that is not divided into imbalance and noise.
double undivided(const StepCosts& costs) { return costs.waiting - costs.uneven - costs.hiccups; }

}  // namespace

std::optional<UsefulWork> useful_work(const results::PointData& point,
                                      const breakdown::BreakdownResult& breakdown) {
  if (!breakdown.mean) return std::nullopt;
  const std::vector<double> useful = useful_times(point, breakdown);
  return useful.empty() ? std::nullopt : std::optional{work_of(point, useful)};
}

std::optional<Pop> pop(const results::PointData& point, const breakdown::BreakdownResult& breakdown,
                       const std::optional<UsefulWork>& baseline) {
  if (!breakdown.mean || !(breakdown.mean->step > 0)) return std::nullopt;
  const std::vector<double> useful = useful_times(point, breakdown);
  if (useful.empty()) return std::nullopt;
  const double largest = std::ranges::max(useful);
  if (!(largest > 0)) return std::nullopt;
  Pop pop;
  pop.load_balance =
      std::reduce(useful.begin(), useful.end()) / static_cast<double>(useful.size()) / largest;
  pop.communication = largest / breakdown.mean->step;
  if (breakdown.free_network_step && *breakdown.free_network_step > 0) {
    pop.serialisation = largest / *breakdown.free_network_step;
    pop.transfer = *breakdown.free_network_step / breakdown.mean->step;
  }
  pop.parallel = pop.load_balance * pop.communication;
  if (baseline) add_scalability(work_of(point, useful), *baseline, pop);
  return pop;
}

std::optional<StepCosts> step_costs(const results::PointData& point,
                                    const breakdown::BreakdownResult& breakdown) {
  if (!breakdown.mean) return std::nullopt;
  const breakdown::Breakdown& mean = *breakdown.mean;
  const std::map<int, TracedSums> traced = traced_sums(point);
  if (traced.empty()) return std::nullopt;
  StepCosts costs{
      .gemm = typical(point, traced, [](const TracedSums& at) { return at.median.gemm; }),
      .copies = mean.copies,
      .bubble = breakdown.schedule_bubble.value_or(mean.bubble),
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
  // Time in which ops of two streams overlap is counted twice in `means`, but once in mean.compute.
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

Waterfall waterfall(const StepLoss& point, const StepLoss& baseline) {
  const double scale = point.work / baseline.work * baseline.ranks / point.ranks;
  Waterfall result{.ideal = baseline.step * scale, .measured = point.step};
  const StepCosts &mine = point.costs, &base = baseline.costs;
  const auto add = [&](std::string cause, double of_point, double of_baseline) {
    result.lost.push_back({.cause = std::move(cause), .seconds = of_point - scale * of_baseline});
  };
  const auto add_part = [&](const char* cause, double StepCosts::*part) {
    add(cause, mine.*part, base.*part);
  };
  // Adds a cause if its cost is known for both the point and the baseline; returns true if it is.
  const auto add_known = [&](const char* cause, std::optional<double> StepCosts::*part) {
    const bool is_known = mine.*part && base.*part;
    if (is_known) add(cause, *(mine.*part), *(base.*part));
    return is_known;
  };

  if (add_known("GEMMs", &StepCosts::gemm_alone)) {
    add_known("GEMM overlap", &StepCosts::gemm_overlap);
  } else {
    add_part("GEMMs", &StepCosts::gemm);
    result.missing.emplace_back(
        "GEMMs by themselves and their overlap are not separated: that takes solo times at both "
        "ends");
  }
  add_part("other compute", &StepCosts::other_compute);
  add_part("copies", &StepCosts::copies);
  if (mine.communication || base.communication) {
    add("communication", together(mine), together(base));
    result.missing.emplace_back(
        "transfers and waiting are not separated: some partners were not traced, or their clocks"
        " not aligned");
  } else {
    std::map<mesh::AxisSet, double> of_either = mine.transfer;
    of_either.insert(base.transfer.begin(), base.transfer.end());
    for (const auto& [at, seconds] : of_either) {
      add(mesh::to_string(at) + " transfer", transfer_of(mine, at), transfer_of(base, at));
    }
    add_part("bubble", &StepCosts::bubble);
    if (add_known("imbalance", &StepCosts::imbalance)) {
      add_known("noise", &StepCosts::noise);
    } else {
      add_part("imbalance", &StepCosts::uneven);
      add_part("noise", &StepCosts::hiccups);
      add("waiting", undivided(mine), undivided(base));
      result.missing.emplace_back(
          "waiting is not divided into imbalance and noise: that takes more traced steps at both "
          "ends");
    }
  }
  add_part("gap", &StepCosts::gap);
  add_part("other", &StepCosts::other);
  add("uneven steps", point.slowest - point.traced, baseline.slowest - baseline.traced);
  add("untraced", point.step - point.slowest, baseline.step - baseline.slowest);
  result.explains = std::abs(result.lost.back().seconds) <= most_untraced * result.measured;
  return result;
}

}  // namespace isoscale::analysis::efficiency
