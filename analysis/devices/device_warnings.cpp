// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/devices/device_state_and_energy.hpp"
#include "results/records/point_facts.hpp"
#include "statistics/estimate.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis::devices {
namespace {

using results::DeviceSeries;
using results::PointData;

/// A throttle reason that is common in normal operation is reported from this share of samples on.
constexpr double reason_share = 0.1;

struct Reason {
  std::uint64_t bit;
  std::string_view name;
  double least_share;  ///< the reason is reported if at least this share of the samples has it
};
/// The bits of nvmlClocksEventReasons that are reported. Two are not: the GPU is idle (1), and a
/// display setting limits the clocks (0x100). A hardware slowdown without its cause (0x40, 0x80)
/// may be a change of the clock (NVML's reference), so single samples of it are not reported.
constexpr std::array<Reason, 7> reasons{{{0x02, "clock settings", reason_share},
                                         {0x04, "software power cap", reason_share},
                                         {0x08, "hardware slowdown", reason_share},
                                         {0x10, "sync boost", reason_share},
                                         {0x20, "software thermal slowdown", 0},
                                         {0x40, "hardware thermal slowdown", 0},
                                         {0x80, "hardware power brake", 0}}};

constexpr double drift_limit = 0.03;         // relative change from the first to the last third
constexpr std::size_t fewest_of_third = 3;   // fewest samples in each of these two thirds
constexpr double dip = 0.9;                  // share of the median; lower samples count as dips
constexpr double dip_share = 0.1;            // dips are reported above this share of the samples
constexpr std::size_t fewest_for_dips = 10;  // fewest samples in which dips are looked for
constexpr double busy_enough = 0.8;          // share of the time in which a CPU must be busy
/// The bit of nvmlClocksEventReasons for an idle GPU.
constexpr std::uint64_t idle_bit = 0x01;

/// Returns "rank 3, gpu 1".
std::string name_of(const PointData& point, const DeviceSeries& series) {
  return fmt::format("rank {}, {}", world_rank(point, series.rank), series.device);
}

/// True if a device was busy at the time of a sample of its clock. `of` holds its reasons for
/// lowered clocks (GPU) or its busy time (CPU); null if not sampled. Without a sample at this time,
/// a GPU counts as busy and a CPU does not.
bool was_busy(const DeviceSeries* of, bool is_gpu, double time) {
  if (of == nullptr) return is_gpu;
  const auto found = std::ranges::lower_bound(of->time, time);
  if (found == of->time.end() || *found != time) return is_gpu;
  const auto i = static_cast<std::size_t>(found - of->time.begin());
  if (is_gpu) return (sampled_bits(of->value[i]).value_or(0) & idle_bit) == 0;
  if (i == 0) return false;
  const double busy = of->value[i] - of->value[i - 1];
  return busy >= busy_enough * (of->time[i] - of->time[i - 1]);
}

struct ClockSamples {
  std::vector<double> time, value;
};

/// Returns the samples of a clock that were taken after warm-up while the device was busy.
ClockSamples counting(const UsableSeries& usable, const DeviceSeries& clock, double begin) {
  const bool is_gpu = clock.device.starts_with("gpu");
  const DeviceSeries* const of =
      usable.find(clock.rank, clock.device, is_gpu ? "throttle_reasons" : "busy_time");
  ClockSamples samples;
  for (std::size_t i = 0; i < clock.value.size(); ++i) {
    if (clock.time[i] < begin || !was_busy(of, is_gpu, clock.time[i])) continue;
    samples.time.push_back(clock.time[i]);
    samples.value.push_back(clock.value[i]);
  }
  return samples;
}

/// Returns a sentence if a clock's medians over the first and the last third of the time differ by
/// more than `drift_limit`; "" if they differ less, or if a third has too few samples.
std::string drift_sentence(const ClockSamples& samples) {
  if (samples.time.empty()) return "";
  const double third = (samples.time.back() - samples.time.front()) / 3;
  std::vector<double> early, late;
  for (std::size_t i = 0; i < samples.time.size(); ++i) {
    if (samples.time[i] <= samples.time.front() + third) early.push_back(samples.value[i]);
    if (samples.time[i] >= samples.time.back() - third) late.push_back(samples.value[i]);
  }
  if (early.size() < fewest_of_third || late.size() < fewest_of_third) return "";
  const double from = *statistics::median(early), to = *statistics::median(late);
  if (!(from > 0) || std::abs(to / from - 1) <= drift_limit) return "";
  return fmt::format("went from {} to {} (medians of its first and last third)",
                     units::format_prefixed(from, "Hz"), units::format_prefixed(to, "Hz"));
}

std::string dip_sentence(const ClockSamples& samples) {
  if (samples.value.size() < fewest_for_dips) return "";
  const double middle = *statistics::median(samples.value);
  const auto low =
      std::ranges::count_if(samples.value, [&](double value) { return value < dip * middle; });
  const double share = static_cast<double>(low) / static_cast<double>(samples.value.size());
  if (share <= dip_share) return "";
  return fmt::format("was below 90% of its median, {}, in {} of the samples",
                     units::format_prefixed(middle, "Hz"), units::format_percent(share, 0));
}

std::string clock_sentence(const PointData& point, const UsableSeries& usable,
                           const DeviceSeries& series, double begin) {
  const ClockSamples samples = counting(usable, series, begin);
  std::string text = drift_sentence(samples);
  if (text.empty()) text = dip_sentence(samples);
  if (text.empty()) return "";
  const std::string_view kind = series.quantity == "sm_clock"       ? "SM clock"
                                : series.quantity == "memory_clock" ? "memory clock"
                                                                    : "clock";
  return fmt::format("{}: the {} {}", name_of(point, series), kind, text);
}

std::string throttle_sentence(const PointData& point, const DeviceSeries& series, double begin) {
  std::vector<std::string> said;
  for (const HeldDown& at : held_down(series, begin)) {
    if (at.reason == "software power cap") continue;  // usual under full load; see findings
    said.push_back(
        fmt::format("{} ({} of the samples)", at.reason, units::format_percent(at.share, 0)));
  }
  if (said.empty()) return "";
  return fmt::format("{}: clocks were held down by {}", name_of(point, series),
                     fmt::join(said, ", "));
}

/// Returns a sentence on the errors that were counted in the series; "" if there are none.
std::string error_sentence(const PointData& point, const DeviceSeries& series) {
  struct Kind {
    std::string_view quantity, name;
  };
  constexpr std::array<Kind, 7> kinds{{{"ecc_corrected", "corrected ECC errors"},
                                       {"ecc_uncorrected", "uncorrected ECC errors"},
                                       {"throttle_count", "slow-downs of cores by heat"},
                                       {"symbol_errors", "symbol errors"},
                                       {"link_downed", "times that the link went down"},
                                       {"send_errors", "transmit errors"},
                                       {"receive_errors", "receive errors"}}};
  const auto* const kind = std::ranges::find(kinds, series.quantity, &Kind::quantity);
  if (kind == kinds.end()) return "";
  const double grown = series.value.back() - series.value.front();
  if (!(grown > 0)) return "";
  return fmt::format("{}: {:.0f} {}", name_of(point, series), grown, kind->name);
}

}  // namespace

std::optional<std::uint64_t> sampled_bits(double sample) {
  constexpr double largest = 0x1p53;
  if (!(sample >= 0 && sample <= largest) || sample != std::floor(sample)) return std::nullopt;
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

std::vector<std::string> device_warnings(const PointData& point) {
  const double begin = warm_up_seconds(point);
  std::vector<std::string> warnings;
  const auto add = [&](std::string sentence) {
    if (!sentence.empty()) warnings.push_back(std::move(sentence));
  };
  const UsableSeries usable = usable_series(point);
  for (const DeviceSeries* const series : usable.series) {
    const std::string& quantity = series->quantity;
    if (quantity == "sm_clock" || quantity == "memory_clock" || quantity == "clock") {
      add(clock_sentence(point, usable, *series, begin));
    } else if (quantity == "throttle_reasons") {
      add(throttle_sentence(point, *series, begin));
    } else {
      add(error_sentence(point, *series));
    }
  }
  warnings.insert(warnings.end(), usable.left_out.begin(), usable.left_out.end());
  return warnings;
}

}  // namespace isoscale::analysis::devices
