// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/devices/device_state_and_energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include "base/text.hpp"
#include "results/records/point_facts.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis::devices {
namespace {

using results::DeviceSeries;
using results::PointData;

/// Upper limits for the values (SI units) and times (s) of samples, far above those of any device.
/// Below these limits all sums and products are finite.
constexpr double largest_value = 1e24, largest_time = 1e12;
constexpr double shortest_interval = 1e-9;  // s between two samples
/// The tolerance when a busy time is compared with the elapsed time: a tenth of the elapsed time
/// plus 0.1 s, since kernels count busy times in ticks of 0.01 s.
constexpr double busy_slack = 0.1;

struct Known {
  std::string_view name;
  Quantity quantity;
};
constexpr std::array<Known, 21> known_quantities{{
    {"clock", {"Hz"}},
    {"clock_min", {"Hz"}},
    {"sm_clock", {"Hz"}},
    {"memory_clock", {"Hz"}},
    {"power", {"W"}},
    {"temperature", {"K"}},
    {"utilisation", {"1"}},
    {"sample_time", {"s"}},
    {"energy", {"J", QuantityKind::counter}},
    {"busy_time", {"s", QuantityKind::counter}},
    {"throttle_count", {"1", QuantityKind::counter}},
    {"ecc_corrected", {"1", QuantityKind::counter}},
    {"ecc_uncorrected", {"1", QuantityKind::counter}},
    {"link_downed", {"1", QuantityKind::counter}},
    {"symbol_errors", {"1", QuantityKind::counter}},
    {"send_errors", {"1", QuantityKind::counter}},
    {"receive_errors", {"1", QuantityKind::counter}},
    {"sent_bytes", {"B", QuantityKind::counter}},
    {"received_bytes", {"B", QuantityKind::counter}},
    {"nvlink_sent_bytes", {"B", QuantityKind::counter}},
    {"nvlink_received_bytes", {"B", QuantityKind::counter}},
}};

double period_of(const DeviceSeries& series) { return series.time.back() - series.time.front(); }

bool are_within(std::span<const double> numbers, double largest) {
  // The comparison is false for NaN, so NaN is not within any limit.
  return std::ranges::all_of(numbers, [&](double x) { return std::abs(x) <= largest; });
}

/// Returns why the values of a series are impossible for its quantity; "" if they are possible. The
/// caller has checked that all values are finite.
std::string_view flaw_of_values(const DeviceSeries& series, const Quantity& quantity) {
  const std::vector<double>& values = series.value;
  if (quantity.kind == QuantityKind::counter && !std::ranges::is_sorted(values)) {
    return "it counts and falls";
  }
  if (quantity.unit.empty() || quantity.kind == QuantityKind::bits) return "";
  const auto [least, most] = std::ranges::minmax(values);
  if (least < 0) return "it is below 0";
  if (series.quantity == "utilisation" && most > 1) return "it is a share above 1";
  const double limit = period_of(series) * (1 + busy_slack) + busy_slack;
  if (series.quantity == "busy_time" && most - least > limit) {
    return "it grows faster than time";
  }
  return "";
}

constexpr double shortest_loop = 1;  // s; no energy is computed for a shorter measuring loop

using AllSeries = std::vector<const DeviceSeries*>;

/// Returns the mean growth of a counter in a second: the power (W) from a counter of joules.
std::optional<double> rate_of_counter(const DeviceSeries& series) {
  const double period = period_of(series);
  if (period <= 0) return std::nullopt;
  return (series.value.back() - series.value.front()) / period;
}

/// Returns the mean power (W) from samples of power, by the trapezoidal rule.
std::optional<double> power_of_samples(const DeviceSeries& series) {
  const double period = period_of(series);
  if (period <= 0) return std::nullopt;
  double joules = 0;
  for (std::size_t i = 1; i < series.time.size(); ++i) {
    joules += (series.value[i] + series.value[i - 1]) / 2 * (series.time[i] - series.time[i - 1]);
  }
  return joules / period;
}

/// Returns the power (W) of each rank's GPU, without the ranks whose GPU has no known power.
std::map<int, double> gpu_powers(const AllSeries& usable) {
  std::map<int, double> powers;
  const auto add = [&](std::string_view quantity, auto power_from) {
    for (const DeviceSeries* const series : usable) {
      if (!series->device.starts_with("gpu") || series->quantity != quantity) continue;
      const std::optional<double> power = power_from(*series);
      if (power) powers.try_emplace(series->rank, *power);
    }
  };
  add("energy", rate_of_counter);
  add("power", power_of_samples);
  return powers;
}

/// The power (W) of the CPU packages and memory of one rank's node, and the number of packages.
struct NodePower {
  double power = 0;
  int packages = 0;
};
std::map<int, NodePower> node_powers(const AllSeries& usable) {
  std::map<int, NodePower> powers;
  for (const DeviceSeries* const series : usable) {
    const bool package = series->device.starts_with("package");
    if (series->quantity != "energy" || (!package && !series->device.starts_with("dram"))) continue;
    const std::optional<double> power = rate_of_counter(*series);
    if (!power) continue;
    powers[series->rank].power += *power;
    powers[series->rank].packages += package ? 1 : 0;
  }
  return powers;
}

void add_gpus(Energy& energy, const PointData& point, const AllSeries& usable) {
  energy.of = "GPUs";
  if (results::has_label(point.labels, "shared-gpu")) {
    energy.missing = "ranks share GPUs";
    return;
  }
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
                  const AllSeries& usable) {
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

/// Returns the seconds that the point's measuring loop took. If the file gives no valid time for
/// it, returns the longest time between the first and the last sample of a series.
double loop_seconds(const PointData& point, const AllSeries& usable) {
  constexpr double longest_loop = 1e12;
  const double said = point.measured_seconds.value_or(-1);
  if (said >= 0 && said <= longest_loop) return said;
  double longest = 0;
  for (const DeviceSeries* const series : usable) longest = std::max(longest, period_of(*series));
  return longest;
}

std::vector<double> after(const DeviceSeries& series, double begin) {
  std::vector<double> values;
  for (std::size_t i = 0; i < series.value.size(); ++i) {
    if (series.time[i] >= begin) values.push_back(series.value[i]);
  }
  return values.empty() ? series.value : values;
}

SeriesSummary summary(const DeviceSeries& series, double begin) {
  SeriesSummary result{.data = &series};
  if (quantity_of(series.quantity).kind != QuantityKind::level) return result;
  const std::vector<double> values = after(series, begin);
  result.minimum = std::ranges::min(values);
  result.median = statistics::median(values);
  result.maximum = std::ranges::max(values);
  return result;
}

void add_state(DeviceState& state, const results::RunData& run) {
  const bool gpus = run.device != "host";
  const std::string_view clock = gpus ? "sm_clock" : "clock";
  const std::string_view lowest = gpus ? "sm_clock" : "clock_min";
  std::vector<double> clocks, busy;
  for (const SeriesSummary& series : state.series) {
    const std::string& quantity = series.data->quantity;
    if (series.data->device.starts_with("gpu") != gpus) continue;
    if (quantity == clock && series.median) clocks.push_back(*series.median);
    if (quantity == lowest && series.minimum) {
      state.clock_min = std::min(state.clock_min.value_or(*series.minimum), *series.minimum);
    }
    if (quantity == "temperature" && series.maximum) {
      state.temperature = std::max(state.temperature.value_or(*series.maximum), *series.maximum);
    }
    if (quantity == "utilisation" && series.median) busy.push_back(*series.median);
    if (quantity != "busy_time") continue;
    if (const auto share = rate_of_counter(*series.data)) busy.push_back(*share);
  }
  state.clock = statistics::median(clocks);
  if (!busy.empty()) {
    state.utilisation = std::reduce(busy.begin(), busy.end()) / static_cast<double>(busy.size());
  }
}

}  // namespace

Quantity quantity_of(std::string_view name) {
  if (name == "throttle_reasons") return {.unit = "1", .kind = QuantityKind::bits};
  const auto* const known = std::ranges::find(known_quantities, name, &Known::name);
  if (known != known_quantities.end()) return known->quantity;
  const bool counts = name.ends_with("_bytes") || name.ends_with("_errors");
  return {.unit = "", .kind = counts ? QuantityKind::counter : QuantityKind::level};
}

std::string_view flaw_of(const DeviceSeries& series) {
  const Quantity quantity = quantity_of(series.quantity);
  if (series.value.empty()) return "it has no samples";
  if (series.time.size() != series.value.size()) return "it has not one time for each value";
  if (!quantity.unit.empty() && series.unit != quantity.unit) return "its unit is another one";
  const bool is_number = quantity.kind != QuantityKind::bits;
  const double largest = is_number ? largest_value : std::numeric_limits<double>::max();
  if (!are_within(series.value, largest)) return "its values are not plausible";
  if (!are_within(series.time, largest_time)) return "its times are not plausible";
  for (std::size_t i = 1; i < series.time.size(); ++i) {
    if (series.time[i] - series.time[i - 1] < shortest_interval) return "its times do not rise";
  }
  return flaw_of_values(series, quantity);
}

UsableSeries usable_series(const results::PointData& point) {
  UsableSeries usable;
  std::map<std::string_view, AllSeries> left_out;  // by flaw
  for (const DeviceSeries& series : point.device_series) {
    std::string_view flaw = flaw_of(series);
    const bool is_first =
        flaw.empty() &&
        usable.by_name.try_emplace({series.rank, series.device, series.quantity}, &series).second;
    if (is_first) {
      usable.series.push_back(&series);
      continue;
    }
    if (flaw.empty()) flaw = "it is there twice";
    left_out[flaw].push_back(&series);
  }
  for (const auto& [flaw, all] : left_out) {
    const DeviceSeries& first = *all.front();
    const std::string more =
        all.size() == 1 ? "" : fmt::format(" (and so are {} more series)", all.size() - 1);
    usable.left_out.push_back(fmt::format("rank {}, {}: {} is left out, since {}{}",
                                          world_rank(point, first.rank), first.device,
                                          first.quantity, flaw, more));
  }
  return usable;
}

Energy energy_of(const results::RunData& run, const PointData& point) {
  const AllSeries usable = usable_series(point).series;
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

double warm_up_seconds(const PointData& point) {
  double seconds = 0;
  const auto steps = static_cast<std::size_t>(std::max<std::int64_t>(0, point.warm_up_steps));
  for (std::size_t step = 0; step < std::min(steps, point.step_times.size()); ++step) {
    const std::vector<double>& of_rank = point.step_times[step];
    if (of_rank.empty()) continue;
    const double slowest = std::ranges::max(of_rank);
    if (std::isfinite(slowest)) seconds += slowest;
  }
  return seconds;
}

DeviceState device_state(const results::RunData& run, const PointData& point) {
  DeviceState state;
  if (point.status != results::PointStatus::ok || point.device_series.empty()) return state;
  const double begin = warm_up_seconds(point);
  for (const DeviceSeries* const series : usable_series(point).series) {
    state.series.push_back(summary(*series, begin));
  }
  add_state(state, run);
  state.energy = energy_of(run, point);
  state.warnings = device_warnings(point);
  return state;
}

}  // namespace isoscale::analysis::devices
