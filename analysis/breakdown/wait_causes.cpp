// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/breakdown/wait_causes.hpp"

#include <cstdint>
#include <limits>

namespace isoscale::analysis {
namespace {

using units::Nanoseconds;

/// Calls visit(rank, op, instance) for every op of a step that is part of an instance.
template <class Visit>
void for_each_member(const TracedStep& step, Visit&& visit) {
  for (std::size_t rank = 0; rank < step.waits.size(); ++rank) {
    for (std::size_t op = 0; op < step.waits[rank].size(); ++op) {
      const std::uint32_t instance = step.instance[rank][op];
      if (instance != no_instance) visit(rank, op, instance);
    }
  }
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
    Nanoseconds least{std::numeric_limits<std::int64_t>::max()};  ///< in the other steps
    Nanoseconds of_expected;  ///< what the rank to be expected last waits in this step
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

std::vector<double> WaitCauses::caused() const {
  std::vector<double> seconds(total_.size(), 0.0);
  for (const TracedStep& step : steps_.steps) {
    struct Instance {
      std::size_t last = 0;
      Nanoseconds least{std::numeric_limits<std::int64_t>::max()}, sum;
    };
    std::vector<Instance> instances(step.instances);
    for_each_member(step, [&](std::size_t rank, std::size_t op, std::uint32_t number) {
      Instance& instance = instances[number];
      const Nanoseconds wait = step.waits[rank][op];
      if (wait < instance.least) {
        instance.least = wait;
        instance.last = rank;
      }
      instance.sum += wait;
    });
    for (const Instance& instance : instances) {
      if (instance.sum == Nanoseconds{0}) continue;
      seconds[instance.last] += units::to_seconds(instance.sum).value();
    }
  }
  for (double& value : seconds) value /= static_cast<double>(steps_.steps.size());
  return seconds;
}

}  // namespace isoscale::analysis
