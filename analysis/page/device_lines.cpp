// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/page/point_details.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "analysis/devices/device_state_and_energy.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::page {
namespace {

using Json = nlohmann::ordered_json;
using results::DeviceSeries;

constexpr int digits = 5;  ///< significant digits of times and values

/// Returns the position of a quantity's chart; quantities that are not in `order` come last.
std::size_t place_of(const std::string& quantity) {
  constexpr std::array<std::string_view, 7> order{
      "sm_clock", "clock", "power", "temperature", "utilisation", "memory_clock", "clock_min"};
  const auto found = std::ranges::find(order, quantity);
  return static_cast<std::size_t>(found - order.begin());
}

/// A device: the rank that sampled it, and the device's name.
using Device = std::pair<int, std::string>;

/// Maps each quantity (its place_of() and its name) to its series, one series for each device.
using ByQuantity = std::map<std::pair<std::size_t, std::string>, std::vector<const DeviceSeries*>>;

/// Returns the series that charts show, by quantity: all usable ones except counters (such as
/// energy) and "sample_time", which is how long each sample took.
ByQuantity drawable(const results::PointData& point) {
  ByQuantity result;
  for (const DeviceSeries* const series : devices::usable_series(point).series) {
    const bool is_counter =
        devices::quantity_of(series->quantity).kind == devices::QuantityKind::counter;
    if (is_counter || series->quantity == "sample_time") continue;
    result[{place_of(series->quantity), series->quantity}].push_back(series);
  }
  return result;
}

/// Returns how much each device differs from the others, in the quantity in which it differs most:
/// the distance of its mean from the median of all means (the larger of two middle ones), divided
/// by the range of the means or by 0.1% of the median, whichever is larger.
std::map<Device, double> oddities(const ByQuantity& all) {
  std::map<Device, double> result;
  for (const auto& [key, series] : all) {
    std::vector<double> means;
    for (const DeviceSeries* const at : series) {
      const double sum = std::accumulate(at->value.begin(), at->value.end(), 0.0);
      means.push_back(sum / static_cast<double>(at->value.size()));
    }
    std::vector<double> sorted = means;
    std::ranges::sort(sorted);
    const double middle = sorted[sorted.size() / 2];
    const double spread = std::max(sorted.back() - sorted.front(), 1e-3 * std::abs(middle));
    for (std::size_t i = 0; i < series.size(); ++i) {
      double& odd = result[{series[i]->rank, series[i]->device}];
      if (spread > 0) odd = std::max(odd, std::abs(means[i] - middle) / spread);
    }
  }
  return result;
}

/// A summary of consecutive samples: their mean time, their mean value (of bit masks: all bits that
/// are set in any of them), and their lowest and highest value.
struct Bucket {
  double time = 0, value = 0, low = 0, high = 0;
};

Bucket bucket_of(const DeviceSeries& series, std::size_t begin, std::size_t end,
                 devices::QuantityKind kind) {
  Bucket bucket{.low = series.value[begin], .high = series.value[begin]};
  std::uint64_t bits = 0;
  for (std::size_t i = begin; i < end; ++i) {
    bucket.time += series.time[i];
    bucket.value += series.value[i];
    bucket.low = std::min(bucket.low, series.value[i]);
    bucket.high = std::max(bucket.high, series.value[i]);
    bits |= devices::sampled_bits(series.value[i]).value_or(0);
  }
  const auto count = static_cast<double>(end - begin);
  bucket.time /= count;
  bucket.value =
      kind == devices::QuantityKind::bits ? static_cast<double>(bits) : bucket.value / count;
  return bucket;
}

/// True if a value equals both its neighbours, so that the line is the same without it.
bool is_level(const Bucket& before, const Bucket& at, const Bucket& after) {
  const auto is_same = [&](double Bucket::*part) {
    return before.*part == at.*part && at.*part == after.*part;
  };
  return is_same(&Bucket::value) && is_same(&Bucket::low) && is_same(&Bucket::high);
}

/// Returns the names of the reasons for lowered clocks whose bits are set in the value; "" if none.
Json reasons_text(const Bucket& at) {
  const auto names = devices::reason_names(static_cast<std::uint64_t>(at.value));
  return fmt::format("{}", fmt::join(names, ", "));
}

void add_values(const DeviceSeries& series, std::size_t most, Json& line) {
  const devices::QuantityKind kind = devices::quantity_of(series.quantity).kind;
  const bool has_bits = kind == devices::QuantityKind::bits;
  const std::size_t samples = series.value.size();
  const std::size_t count = std::min(samples, std::max<std::size_t>(most, 2));
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < count; ++i) {
    buckets.push_back(bucket_of(series, i * samples / count, (i + 1) * samples / count, kind));
  }
  Json time = Json::array(), value = Json::array(), low = Json::array(), high = Json::array();
  bool varies = false;
  for (std::size_t i = 0; i < count; ++i) {
    const Bucket& at = buckets[i];
    if (i > 0 && i + 1 < count && is_level(buckets[i - 1], at, buckets[i + 1])) continue;
    time.push_back(drawn(at.time, digits));
    value.push_back(has_bits ? reasons_text(at) : drawn(at.value, digits));
    low.push_back(drawn(at.low, digits));
    high.push_back(drawn(at.high, digits));
    varies = varies || at.low != at.high;
  }
  line["averaged"] = (samples + count - 1) / count;
  line["time"] = std::move(time);
  line["value"] = std::move(value);
  if (!varies || has_bits) return;
  line["low"] = std::move(low);
  line["high"] = std::move(high);
}

}  // namespace

Json device_lines(std::span<const results::RankFacts> facts, const results::PointData& point,
                  const DetailLimits& limits) {
  Json lines = Json::array();
  const ByQuantity all = drawable(point);
  const std::map<Device, double> odd = oddities(all);
  for (const auto& [key, series] : all) {
    std::vector<const DeviceSeries*> drawn_ones = series;
    std::ranges::stable_sort(drawn_ones, std::ranges::greater{}, [&](const DeviceSeries* at) {
      return odd.at({at->rank, at->device});
    });
    drawn_ones.resize(std::min(drawn_ones.size(), limits.devices));
    std::ranges::stable_sort(drawn_ones, {}, [](const DeviceSeries* at) { return at->rank; });
    for (const DeviceSeries* const at : drawn_ones) {
      Json line{{"device", at->device},
                {"rank", at->rank},
                {"world_rank", world_rank(point, at->rank)},
                {"host", host_of(facts, point, at->rank)},
                {"quantity", at->quantity},
                {"unit", at->unit},
                {"devices", series.size()}};
      add_values(*at, limits.samples, line);
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::size_t count_device_lines(const results::PointData& point, std::size_t devices) {
  std::size_t count = 0;
  for (const auto& [key, series] : drawable(point)) count += std::min(series.size(), devices);
  return count;
}

}  // namespace isoscale::analysis::page
