// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/devices/device_state.hpp"
#include "analysis/devices/usable_series.hpp"
#include "analysis/rank_facts.hpp"
#include "base/text.hpp"

namespace isoscale::analysis {
namespace {

using results::DeviceSeries;
using results::PointData;

constexpr double shortest_loop = 1;  // s

using Usable = std::vector<const DeviceSeries*>;

/// Seconds from the first sample to the last.
double period_of(const DeviceSeries& series) { return series.time.back() - series.time.front(); }

/// W of a counter in joules.
std::optional<double> power_of_counter(const DeviceSeries& series) {
  const double period = period_of(series);
  if (period <= 0) return std::nullopt;
  return (series.value.back() - series.value.front()) / period;
}

/// W, mean of samples of power: each pair of neighbours' mean for as long as they lie apart.
std::optional<double> power_of_samples(const DeviceSeries& series) {
  const double period = period_of(series);
  if (period <= 0) return std::nullopt;
  double joules = 0;
  for (std::size_t i = 1; i < series.time.size(); ++i) {
    joules += (series.value[i] + series.value[i - 1]) / 2 * (series.time[i] - series.time[i - 1]);
  }
  return joules / period;
}

/// Power of each rank's GPU that gave one.
std::map<int, double> gpu_powers(const Usable& usable) {
  std::map<int, double> powers;
  const auto add = [&](std::string_view quantity, auto power_from) {
    for (const DeviceSeries* const series : usable) {
      if (!series->device.starts_with("gpu") || series->quantity != quantity) continue;
      const std::optional<double> power = power_from(*series);
      if (power) powers.try_emplace(series->rank, *power);
    }
  };
  add("energy", power_of_counter);
  add("power", power_of_samples);
  return powers;
}

/// Power of the packages of each rank's node, and how many there are.
struct NodePower {
  double power = 0;
  int packages = 0;
};
std::map<int, NodePower> node_powers(const Usable& usable) {
  std::map<int, NodePower> powers;
  for (const DeviceSeries* const series : usable) {
    const bool package = series->device.starts_with("package");
    if (series->quantity != "energy" || (!package && !series->device.starts_with("dram"))) continue;
    const std::optional<double> power = power_of_counter(*series);
    if (!power) continue;
    powers[series->rank].power += *power;
    powers[series->rank].packages += package ? 1 : 0;
  }
  return powers;
}

void add_gpus(Energy& energy, const PointData& point, const Usable& usable) {
  energy.of = "GPUs";
  const std::map<int, double> powers = gpu_powers(usable);
  const auto missing = point.ranks - static_cast<int>(powers.size());
  if (missing > 0) {
    energy.missing =
        fmt::format("{} of {} GPUs reported neither energy nor power", missing, point.ranks);
    return;
  }
  double sum = 0;
  for (const auto& [rank, power] : powers) sum += power;
  energy.power = sum;
}

void add_packages(Energy& energy, const results::RunData& run, const PointData& point,
                  const Usable& usable) {
  energy.of = "CPU packages";
  double sum = 0;
  int whole = 0;
  for (const auto& [rank, node] : node_powers(usable)) {
    const results::RankFacts* const facts = facts_of(run.rank_facts, point, rank);
    const bool known = facts != nullptr && facts->number.contains("sockets");
    const double sockets = known ? facts->number.at("sockets") : 1;
    if (node.packages < sockets || node.packages == 0) continue;
    sum += node.power;
    ++whole;
  }
  if (whole < point.nodes || whole == 0) {
    energy.missing = fmt::format(
        "{} of {} reported no energy for all packages (RAPL: not in virtual machines, and "
        "root's alone on many systems)",
        point.nodes - whole, base::counted(point.nodes, "node"));
    return;
  }
  energy.power = sum;
}

/// How long the loop took; by the samples where it is not said, or is no time.
double loop_seconds(const PointData& point, const Usable& usable) {
  constexpr double longest_loop = 1e12;
  const double said = point.measured_seconds.value_or(-1);
  if (said >= 0 && said <= longest_loop) return said;
  double longest = 0;
  for (const DeviceSeries* const series : usable) longest = std::max(longest, period_of(*series));
  return longest;
}

}  // namespace

Energy energy_of(const results::RunData& run, const PointData& point) {
  const Usable usable = usable_series(point).series;
  Energy energy;
  if (run.device == "host") {
    add_packages(energy, run, point, usable);
  } else {
    add_gpus(energy, point, usable);
  }
  const double seconds = loop_seconds(point, usable);
  if (energy.power && seconds < shortest_loop) {
    energy.power.reset();
    energy.missing =
        fmt::format("the loop took {:.2g} s, too short for counters of energy", seconds);
  }
  if (!energy.power) return energy;
  energy.joules = *energy.power * seconds;
  if (point.step_times.empty()) return energy;
  energy.joules_per_step = *energy.joules / static_cast<double>(point.step_times.size());
  const double per_token = *energy.joules_per_step / point.work_per_step;
  if (point.work_per_step > 0 && std::isfinite(per_token)) energy.joules_per_token = per_token;
  return energy;
}

}  // namespace isoscale::analysis
