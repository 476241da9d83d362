// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/efficiency/pop.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace isoscale::analysis {
namespace {

double useful_time(const Breakdown& parts) { return parts.compute + parts.copies; }

/// Useful seconds a step by rank of the point; empty where that of some rank is not known.
std::vector<double> useful_times(const results::PointData& point,
                                 const BreakdownResult& breakdown) {
  std::vector<double> times;
  if (std::cmp_equal(breakdown.ranks.size(), point.ranks)) {
    for (const Breakdown& rank : breakdown.of_rank) times.push_back(useful_time(rank));
    return times;
  }
  for (const results::OpSums& step : point.op_sums) {
    const auto ranks = static_cast<std::size_t>(point.ranks);
    if (step.gemm.size() != ranks || step.other_compute.size() != ranks ||
        step.copies.size() != ranks) {
      return {};
    }
    times.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      times[rank] += (step.gemm[rank] + step.other_compute[rank] + step.copies[rank]) /
                     static_cast<double>(point.op_sums.size());
    }
  }
  return times;
}

void add_scalability(const UsefulWork& mine, const UsefulWork& base, Pop& pop) {
  if (!(mine.work > 0) || !(base.work > 0) || !(mine.useful > 0)) return;
  pop.computation_scalability = (base.useful / base.work) / (mine.useful / mine.work);
  pop.global = pop.parallel * *pop.computation_scalability;
  if (!(mine.flop > 0) || !(base.flop > 0)) return;
  pop.work_scalability = (base.flop / base.work) / (mine.flop / mine.work);
  pop.speed_scalability = *pop.computation_scalability / *pop.work_scalability;
}

}  // namespace

std::optional<UsefulWork> useful_work(const results::PointData& point,
                                      const BreakdownResult& breakdown) {
  if (!breakdown.mean) return std::nullopt;
  const std::vector<double> useful = useful_times(point, breakdown);
  if (useful.empty()) return std::nullopt;
  const double flop = std::reduce(point.flop_of_rank.begin(), point.flop_of_rank.end());
  return UsefulWork{.useful = std::reduce(useful.begin(), useful.end()),
                    .work = point.work_per_step,
                    .flop = std::isfinite(flop) ? flop : 0};
}

std::optional<Pop> pop(const results::PointData& point, const BreakdownResult& breakdown,
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
  if (const auto mine = useful_work(point, breakdown); mine && baseline) {
    add_scalability(*mine, *baseline, pop);
  }
  return pop;
}

}  // namespace isoscale::analysis
