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

/// Calls visit(rank, op, instance) for every op of a step that is part of an instance: a
/// collective, or a pair of exchanges.
template <class Visit>
void for_each_member(const TracedStep& step, Visit&& visit) {
  for (std::size_t rank = 0; rank < step.waits.size(); ++rank) {
    for (std::size_t op = 0; op < step.waits[rank].size(); ++op) {
      const std::uint32_t instance = step.instance[rank][op];
      if (instance != no_instance) visit(rank, op, instance);
    }
  }
}

/// Returns for each rank the seconds that other members waited in one step in the collectives where
/// this rank arrived last.
std::vector<double> caused_in(const TracedStep& step, const program::OutlineSet& set) {
  struct Instance {
    std::size_t last = 0;
    Nanoseconds least{std::numeric_limits<std::int64_t>::max()}, sum;
  };
  std::vector<Instance> instances(step.instances);
  for_each_member(step, [&](std::size_t rank, std::size_t op, std::uint32_t number) {
    if (set.of(static_cast<int>(rank)).ops[op].kind == program::OpKind::exchange) return;
    Instance& instance = instances[number];
    const Nanoseconds wait = step.waits[rank][op];
    if (wait < instance.least) {
      instance.least = wait;
      instance.last = rank;
    }
    instance.sum += wait;
  });
  std::vector<double> seconds(step.waits.size());
  for (const Instance& instance : instances) {
    seconds[instance.last] += units::to_seconds(instance.sum).value();
  }
  return seconds;
}

/// Returns the compute and copy time of each rank, indexed by [step][rank]; empty if one of them is
/// not known.
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
  struct Instance {
    /// For each member, its waits in all other steps are summed; this is the smallest of these
    /// sums.
    Nanoseconds least{std::numeric_limits<std::int64_t>::max()};
    Nanoseconds of_expected;  ///< wait in this step of the member whose sum is `least`
    Nanoseconds sum;
    int members = 0;
  };
  std::vector<Instance> instances(step.instances);
  for_each_member(step, [&](std::size_t rank, std::size_t op, std::uint32_t number) {
    Instance& instance = instances[number];
    const Nanoseconds wait = step.waits[rank][op];
    const Nanoseconds elsewhere = total_[rank][op] - wait;
    if (elsewhere < instance.least) {
      instance.least = elsewhere;
      instance.of_expected = wait;
    }
    instance.sum += wait;
    ++instance.members;
  });
  std::vector<double> shares;
  shares.reserve(instances.size());
  for (const Instance& instance : instances) {
    shares.push_back(instance.sum > Nanoseconds{0}
                         ? instance.members * (instance.of_expected / instance.sum)
                         : std::numeric_limits<double>::quiet_NaN());
  }
  return shares;
}

std::size_t WaitCauses::instances() const {
  std::size_t count = 0;
  for (const TracedStep& step : steps_.steps) {
    std::vector<bool> waited(step.instances);
    for_each_member(step, [&](std::size_t rank, std::size_t op, std::uint32_t number) {
      if (step.waits[rank][op] > Nanoseconds{0}) waited[number] = true;
    });
    count += static_cast<std::size_t>(std::ranges::count(waited, true));
  }
  return count;
}

CausedWait WaitCauses::caused(const program::OutlineSet& set) const {
  CausedWait result{.of_rank = std::vector<double>(total_.size()),
                    .steps_as_last = std::vector<int>(total_.size())};
  for (const TracedStep& step : steps_.steps) {
    const std::vector<double> seconds = caused_in(step, set);
    const auto most = std::ranges::max_element(seconds);
    if (most != seconds.end() && *most > 0) {
      ++result.steps_as_last[static_cast<std::size_t>(most - seconds.begin())];
    }
    for (std::size_t rank = 0; rank < seconds.size(); ++rank) result.of_rank[rank] += seconds[rank];
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
