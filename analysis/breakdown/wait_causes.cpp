// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/wait_causes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

namespace isoscale::analysis::breakdown {
namespace {

using units::Nanoseconds;

/// The waits in an instance (a collective, or a pair of exchanges), summed over its members, and
/// the member with the least time by `least_of` (see instances_of).
struct Instance {
  Nanoseconds least{std::numeric_limits<std::int64_t>::max()};
  std::size_t rank = 0;  ///< the first rank for which `least_of` returns the least time
  Nanoseconds wait;      ///< of this rank
  Nanoseconds sum;
  int members = 0;
};

/// Returns the instances of a step by number. `least_of`(rank, op) returns a time; the member with
/// the least one becomes Instance::rank, and members without one are left out.
template <class LeastOf>
std::vector<Instance> instances_of(const TracedStep& step, const LeastOf& least_of) {
  std::vector<Instance> instances(step.instances);
  for (std::size_t rank = 0; rank < step.waits.size(); ++rank) {
    for (std::size_t op = 0; op < step.waits[rank].size(); ++op) {
      const std::uint32_t number = step.instance[rank][op];
      if (number == no_instance) continue;
      const std::optional<Nanoseconds> time = least_of(rank, op);
      if (!time) continue;
      Instance& instance = instances[number];
      const Nanoseconds wait = step.waits[rank][op];
      if (*time < instance.least) {
        instance.least = *time;
        instance.rank = rank;
        instance.wait = wait;
      }
      instance.sum += wait;
      ++instance.members;
    }
  }
  return instances;
}

/// Returns for each rank the seconds that other members waited in one step in the collectives where
/// this rank arrived last.
std::vector<double> caused_in(const TracedStep& step, const program::OutlineSet& set) {
  const auto wait_in_collective = [&](std::size_t rank, std::size_t op) {
    const bool pair = set.of(static_cast<int>(rank)).ops[op].kind == program::OpKind::exchange;
    return pair ? std::nullopt : std::optional{step.waits[rank][op]};
  };
  std::vector<double> caused(step.waits.size());
  for (const Instance& instance : instances_of(step, wait_in_collective)) {
    caused[instance.rank] += seconds(instance.sum);
  }
  return caused;
}

/// Returns [step][rank]: the compute and copy time in seconds; empty if one of them is not known.
std::vector<std::vector<double>> busy_times(std::span<const results::OpSums> sums) {
  std::vector<std::vector<double>> busy;
  for (const results::OpSums& step : sums) {
    const auto& row = busy.emplace_back(busy_seconds(step, sums.front().gemm.size()));
    const bool known =
        std::ranges::all_of(row, [](double seconds) { return std::isfinite(seconds); });
    if (row.empty() || !known) return {};
  }
  return busy;
}

}  // namespace

WaitCauses::WaitCauses(const TracedSteps& steps) : steps_(steps) {
  if (steps.steps.empty()) return;
  total_.resize(steps.steps.front().waits.size());
  for (const TracedStep& step : steps.steps) {
    for (std::size_t rank = 0; rank < total_.size(); ++rank) {
      const auto& waits = step.waits[rank];
      if (total_[rank].size() < waits.size()) total_[rank].resize(waits.size());
      for (std::size_t op = 0; op < waits.size(); ++op) total_[rank][op] += waits[op];
    }
  }
}

std::vector<double> WaitCauses::noise_shares(std::size_t at) const {
  const TracedStep& step = steps_.steps[at];
  const auto wait_in_other_steps = [&](std::size_t rank, std::size_t op) {
    return total_[rank][op] - step.waits[rank][op];
  };
  std::vector<double> shares;
  for (const Instance& instance : instances_of(step, wait_in_other_steps)) {
    shares.push_back(instance.sum > Nanoseconds{0}
                         ? instance.members * (instance.wait / instance.sum)
                         : std::numeric_limits<double>::quiet_NaN());
  }
  return shares;
}

std::size_t WaitCauses::instances() const {
  std::size_t count = 0;
  for (const TracedStep& step : steps_.steps) {
    const auto own_wait = [&](std::size_t rank, std::size_t op) { return step.waits[rank][op]; };
    count += static_cast<std::size_t>(std::ranges::count_if(
        instances_of(step, own_wait),
        [](const Instance& instance) { return instance.sum > Nanoseconds{0}; }));
  }
  return count;
}

CausedWait WaitCauses::caused(const program::OutlineSet& set) const {
  CausedWait result{.of_rank = std::vector<double>(total_.size()),
                    .steps_as_last = std::vector<int>(total_.size())};
  for (const TracedStep& step : steps_.steps) {
    const std::vector<double> waits = caused_in(step, set);
    const auto most = std::ranges::max_element(waits);
    if (most != waits.end() && *most > 0) {
      ++result.steps_as_last[static_cast<std::size_t>(most - waits.begin())];
    }
    std::ranges::transform(result.of_rank, waits, result.of_rank.begin(), std::plus<>{});
  }
  for (double& value : result.of_rank) value /= static_cast<double>(steps_.steps.size());
  return result;
}

std::optional<double> noise_share(std::span<const results::OpSums> sums) {
  constexpr std::size_t fewest = 6;
  const std::vector<std::vector<double>> busy = busy_times(sums);
  if (busy.size() < fewest || busy.front().size() < 2) return std::nullopt;
  std::vector<double> total(busy.front().size());
  for (const auto& row : busy) std::ranges::transform(total, row, total.begin(), std::plus<>{});
  double waits = 0, noise = 0;
  for (const auto& row : busy) {
    std::size_t expected = 0;  // the rank with the largest time summed over the other steps
    for (std::size_t rank = 1; rank < row.size(); ++rank) {
      if (total[rank] - row[rank] > total[expected] - row[expected]) expected = rank;
    }
    const double last = std::ranges::max(row);
    noise += last - row[expected];
    for (const double mine : row) waits += (last - mine) / static_cast<double>(row.size());
  }
  if (!(waits > 0)) return std::nullopt;
  return noise / waits;
}

}  // namespace isoscale::analysis::breakdown
