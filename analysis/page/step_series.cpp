// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/step_series.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/page/page_number.hpp"

namespace isoscale::analysis {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kinds = 4;

/// Steps of one kind out of `every` that follow each other.
struct Entry {
  std::size_t first = 0;
  StepKind kind{};
  std::optional<double> time{};
};

std::vector<Entry> entries(const results::PointData& point, std::size_t every) {
  std::vector<Entry> result;
  const std::size_t steps = point.step_times.size();
  for (std::size_t begin = 0; begin < steps; begin += every) {
    const auto of_window = static_cast<std::ptrdiff_t>(result.size());
    std::array<std::optional<std::size_t>, kinds> place{};
    for (std::size_t step = begin; step < std::min(steps, begin + every); ++step) {
      const StepKind kind = kind_of_step(point, step);
      auto& at = place[static_cast<std::size_t>(kind)];
      if (!at) {
        at = result.size();
        result.push_back({.first = step, .kind = kind});
      }
      const std::optional<double> time = time_of_step(point, step);
      if (time) result[*at].time = std::max(result[*at].time.value_or(*time), *time);
    }
    std::sort(result.begin() + of_window, result.end(),
              [](const Entry& a, const Entry& b) { return a.first < b.first; });
  }
  return result;
}

/// How many entries there would be.
std::size_t count_entries(const results::PointData& point, std::size_t every) {
  std::size_t count = 0;
  const std::size_t steps = point.step_times.size();
  for (std::size_t begin = 0; begin < steps; begin += every) {
    std::array<std::size_t, kinds> seen{};
    for (std::size_t step = begin; step < std::min(steps, begin + every); ++step) {
      seen[static_cast<std::size_t>(kind_of_step(point, step))] = 1;
    }
    for (const std::size_t one : seen) count += one;
  }
  return count;
}

Json quantiles(const results::PointData& point) {
  constexpr int parts = 100;
  std::vector<double> times;
  for (std::size_t step = 0; step < point.step_times.size(); ++step) {
    if (kind_of_step(point, step) != StepKind::measured) continue;
    if (const auto time = time_of_step(point, step)) times.push_back(*time);
  }
  if (times.empty()) return {};
  std::ranges::sort(times);
  Json result = Json::array();
  for (int i = 0; i <= parts; ++i) {
    const double at = static_cast<double>(times.size() - 1) * i / parts;
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, times.size() - 1);
    const double share = at - static_cast<double>(below);
    result.push_back(drawn(times[below] + share * (times[above] - times[below])));
  }
  return result;
}

}  // namespace

StepKind kind_of_step(const results::PointData& point, std::size_t step) {
  const auto is_set = [step](const std::vector<std::uint8_t>& flags) {
    return step < flags.size() && flags[step] != 0;
  };
  if (point.warm_up_steps > 0 && step < static_cast<std::size_t>(point.warm_up_steps)) {
    return StepKind::warm_up;
  }
  if (is_set(point.dropped)) return StepKind::dropped;
  return is_set(point.traced) ? StepKind::traced : StepKind::measured;
}

std::optional<double> time_of_step(const results::PointData& point, std::size_t step) {
  const std::vector<double>& of_rank = point.step_times[step];
  const bool is_known = !of_rank.empty() && std::ranges::all_of(of_rank, [](double time) {
    return std::isfinite(time) && time > 0;
  });
  if (!is_known) return std::nullopt;
  return *std::ranges::max_element(of_rank);
}

Json step_series(const results::PointData& point, std::size_t most) {
  const std::size_t steps = point.step_times.size();
  most = std::max(most, kinds);
  std::size_t every = std::max<std::size_t>(1, (steps + most - 1) / most);
  while (every < steps && count_entries(point, every) > most) every *= 2;
  Json first = Json::array(), time = Json::array(), kind = Json::array();
  for (const Entry& entry : entries(point, every)) {
    first.push_back(entry.first);
    time.push_back(drawn(entry.time));
    kind.push_back(static_cast<int>(entry.kind));
  }
  return {{"first", first},
          {"time", time},
          {"kind", kind},
          {"every", every},
          {"quantiles", quantiles(point)},
          {"injections", point.injections}};
}

}  // namespace isoscale::analysis
