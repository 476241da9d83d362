// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/causes/pop.hpp"

#include <algorithm>
#include <numeric>

namespace isoscale::analysis {
namespace {

double useful_time(const Breakdown& parts) { return parts.compute + parts.copies; }

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
  return UsefulWork{.useful = useful_time(*breakdown.mean) * point.ranks,
                    .work = point.work_per_step,
                    .flop = std::reduce(point.flop_of_rank.begin(), point.flop_of_rank.end())};
}

std::optional<Pop> pop(const results::PointData& point, const BreakdownResult& breakdown,
                       const std::optional<UsefulWork>& baseline) {
  if (!breakdown.mean || !(breakdown.mean->step > 0)) return std::nullopt;
  double largest = 0, sum = 0;
  for (const Breakdown& rank : breakdown.of_rank) {
    largest = std::max(largest, useful_time(rank));
    sum += useful_time(rank);
  }
  if (!(largest > 0)) return std::nullopt;
  Pop pop;
  pop.load_balance = sum / static_cast<double>(breakdown.of_rank.size()) / largest;
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
