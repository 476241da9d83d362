// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "simulate/coarse_play.hpp"

namespace isoscale::simulate {
namespace {

constexpr int most_plays = 16;

/// The state between plays is when each rank has drained. Costs are whole nanoseconds; what differs
/// by less was rounded.
bool moves_all_alike(const std::vector<CoarseStep>& step) {
  constexpr double rounding = 1e-3;
  const double first = step.front().end - step.front().begin;
  return std::all_of(step.begin(), step.end(), [&](const CoarseStep& rank) {
    return std::abs(rank.end - rank.begin - first) < rounding;
  });
}

}  // namespace

CoarseSteady settle(const CoarseSet& set, const std::vector<double>& factor) {
  CoarseOptions options{.begin = std::vector<double>(static_cast<std::size_t>(set.mesh.size()))};
  if (!factor.empty()) {
    options.factor = [&](int rank, int) { return factor[static_cast<std::size_t>(rank)]; };
  }
  std::vector<double>& begin = options.begin;
  CoarseSteady steady;
  double later_half = 0;
  for (int i = 0; i < most_plays; ++i) {
    const double first = *std::min_element(begin.begin(), begin.end());
    for (double& time : begin) time -= first;
    steady.step = play_coarse(set, options).front();
    if (moves_all_alike(steady.step)) {
      steady.period = steady.step.front().end - steady.step.front().begin;
      return steady;
    }
    const double before = *std::max_element(begin.begin(), begin.end());
    for (std::size_t rank = 0; rank < begin.size(); ++rank) begin[rank] = steady.step[rank].end;
    if (i >= most_plays / 2) later_half += *std::max_element(begin.begin(), begin.end()) - before;
  }
  // Ranks that never meet drift apart, and some programs come back to a state after several plays:
  // the pace of the last rank over many plays.
  steady.period = later_half / (most_plays - most_plays / 2);
  return steady;
}

}  // namespace isoscale::simulate
