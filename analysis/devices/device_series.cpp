// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/devices/device_series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <span>

#include "analysis/rank_facts.hpp"

namespace isoscale::analysis {
namespace {

using results::DeviceSeries;

/// No device has counted so far nor run so long; sums and products of such numbers are finite.
constexpr double largest_value = 1e24, largest_time = 1e12;
constexpr double shortest_interval = 1e-9;  // s
/// Ticks of a kernel that counts hundredths of seconds, and their rounding.
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

bool are_within(std::span<const double> numbers, double largest) {
  // NaN is within nothing.
  return std::ranges::all_of(numbers, [&](double x) { return std::abs(x) <= largest; });
}

/// What a number of this quantity cannot be, given that it is one.
std::string_view flaw_of_values(const DeviceSeries& series, const Quantity& quantity) {
  const std::vector<double>& values = series.value;
  if (quantity.kind == QuantityKind::counter && !std::ranges::is_sorted(values)) {
    return "it counts and falls";
  }
  if (quantity.unit.empty() || quantity.kind == QuantityKind::bits) return "";
  const auto [least, most] = std::ranges::minmax(values);
  if (least < 0) return "it is below 0";
  if (series.quantity == "utilisation" && most > 1) return "it is a share above 1";
  const double watched = series.time.back() - series.time.front();
  if (series.quantity == "busy_time" && most - least > watched * (1 + busy_slack) + busy_slack) {
    return "it grows faster than time";
  }
  return "";
}

constexpr double reason_share = 0.1;

struct Reason {
  std::uint64_t bit;
  std::string_view name;
  double least_share;  ///< of the samples, from which it is worth a word
};
/// nvmlClocksEventReasons without idleness (1), settings of clocks (2) and of displays (0x100).
constexpr std::array<Reason, 6> reasons{{{0x04, "software power cap", reason_share},
                                         {0x08, "hardware slowdown", 0},
                                         {0x10, "sync boost", reason_share},
                                         {0x20, "software thermal slowdown", 0},
                                         {0x40, "hardware thermal slowdown", 0},
                                         {0x80, "hardware power brake", 0}}};

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
  struct LeftOut {
    const DeviceSeries* first = nullptr;
    std::size_t count = 0;
  };
  UsableSeries usable;
  std::map<std::string_view, LeftOut> left_out;  // by flaw
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
    LeftOut& entry = left_out[flaw];
    if (entry.count++ == 0) entry.first = &series;
  }
  for (const auto& [flaw, entry] : left_out) {
    const std::string more =
        entry.count == 1 ? "" : fmt::format(" (and so are {} more series)", entry.count - 1);
    usable.left_out.push_back(fmt::format("rank {}, {}: {} is left out, since {}{}",
                                          world_rank(point, entry.first->rank), entry.first->device,
                                          entry.first->quantity, flaw, more));
  }
  return usable;
}

const DeviceSeries* find_series(const results::PointData& point, int rank,
                                const std::string& device, const std::string& quantity) {
  const auto found = std::ranges::find_if(point.device_series, [&](const DeviceSeries& series) {
    return series.rank == rank && series.device == device && series.quantity == quantity &&
           flaw_of(series).empty();
  });
  return found == point.device_series.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> sampled_bits(double sample) {
  constexpr double largest = 0x1p53;
  if (!(sample >= 0 && sample <= largest)) return std::nullopt;
  return static_cast<std::uint64_t>(sample);
}

std::vector<std::string_view> reason_names(std::uint64_t bits) {
  std::vector<std::string_view> names;
  for (const Reason& reason : reasons) {
    if ((bits & reason.bit) != 0) names.push_back(reason.name);
  }
  return names;
}

std::vector<HeldDown> held_down(const results::DeviceSeries& series, double begin) {
  std::vector<std::uint64_t> seen;
  for (std::size_t i = 0; i < series.value.size(); ++i) {
    const std::optional<std::uint64_t> bits = sampled_bits(series.value[i]);
    if (series.time[i] >= begin && bits) seen.push_back(*bits);
  }
  std::vector<HeldDown> said;
  for (const Reason& reason : reasons) {
    const auto count =
        std::ranges::count_if(seen, [&](std::uint64_t bits) { return (bits & reason.bit) != 0; });
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(seen.size());
    if (share < reason.least_share) continue;
    said.push_back({.reason = reason.name, .share = share});
  }
  return said;
}

}  // namespace isoscale::analysis
