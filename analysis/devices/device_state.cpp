// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/devices/device_state.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "analysis/devices/usable_series.hpp"
#include "statistics/estimate.hpp"

namespace isoscale::analysis {
namespace {

using results::DeviceSeries;
using results::PointData;

std::vector<double> after(const DeviceSeries& series, double begin) {
  std::vector<double> values;
  for (std::size_t i = 0; i < series.value.size(); ++i) {
    if (series.time[i] >= begin) values.push_back(series.value[i]);
  }
  return values.empty() ? series.value : values;
}

SeriesSummary summary(const DeviceSeries& series, double begin) {
  SeriesSummary result{.rank = series.rank,
                       .device = series.device,
                       .quantity = series.quantity,
                       .unit = series.unit,
                       .first = series.value.front(),
                       .last = series.value.back(),
                       .samples = series.value.size()};
  if (quantity_of(series.quantity).kind != QuantityKind::level) return result;
  const std::vector<double> values = after(series, begin);
  result.minimum = std::ranges::min(values);
  result.median = median(values);
  result.maximum = std::ranges::max(values);
  return result;
}

enum class Computing : std::uint8_t { gpus, cpus };

/// What the devices that compute are like, out of the summaries.
void add_state(DeviceState& state, const UsableSeries& usable, Computing computing) {
  const bool gpus = computing == Computing::gpus;
  const std::string_view clock = gpus ? "sm_clock" : "clock";
  const std::string_view lowest = gpus ? "sm_clock" : "clock_min";
  std::vector<double> clocks, busy;
  for (const SeriesSummary& series : state.series) {
    const bool is_gpu = series.device.starts_with("gpu");
    if (is_gpu != gpus) continue;
    if (series.quantity == clock && series.median) clocks.push_back(*series.median);
    if (series.quantity == lowest && series.minimum) {
      state.clock_min = std::min(state.clock_min.value_or(*series.minimum), *series.minimum);
    }
    if (series.quantity == "temperature" && series.maximum) {
      state.temperature = std::max(state.temperature.value_or(*series.maximum), *series.maximum);
    }
    if (series.quantity == "utilisation" && series.median) busy.push_back(*series.median);
    if (series.quantity != "busy_time") continue;
    const DeviceSeries* const counter = usable.find(series.rank, series.device, series.quantity);
    const double period = counter->time.back() - counter->time.front();
    if (period > 0) busy.push_back((series.last - series.first) / period);
  }
  state.clock = median(clocks);
  if (!busy.empty()) {
    state.utilisation = std::reduce(busy.begin(), busy.end()) / static_cast<double>(busy.size());
  }
}

}  // namespace

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

const DeviceSeries* find_series(const PointData& point, int rank, const std::string& device,
                                const std::string& quantity) {
  const auto found = std::ranges::find_if(point.device_series, [&](const DeviceSeries& series) {
    return series.rank == rank && series.device == device && series.quantity == quantity &&
           flaw_of(series).empty();
  });
  return found == point.device_series.end() ? nullptr : &*found;
}

DeviceState device_state(const results::RunData& run, const PointData& point) {
  DeviceState state;
  if (point.status != results::PointStatus::ok || point.device_series.empty()) return state;
  const double begin = warm_up_seconds(point);
  const UsableSeries usable = usable_series(point);
  for (const DeviceSeries* const series : usable.series) {
    state.series.push_back(summary(*series, begin));
  }
  add_state(state, usable, run.device == "host" ? Computing::cpus : Computing::gpus);
  state.energy = energy_of(run, point);
  state.warnings = device_warnings(point);
  return state;
}

}  // namespace isoscale::analysis
