// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/statistics/sample_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/statistics/statistics.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t fewest_flagged = 8;
constexpr double by_chance = 0.005;        // probability below which a trend is none of chance
constexpr double worth_a_word = 0.01;      // relative
constexpr double one_mode_at_most = 0.65;  // sqrt(n) dip: 99.5% of uniform samples, 20,000 draws
constexpr double smallest_group = 0.05;    // share of the samples
constexpr double apart = 2;                // Ashman's D
constexpr double far = 5;                  // scaled median absolute deviations

std::optional<TwoGroups> bimodal(std::span<const double> samples) {
  const auto depth = dip(samples);
  const auto groups = two_groups(samples);
  if (!depth || !groups) return std::nullopt;
  const bool is_deep = std::sqrt(static_cast<double>(samples.size())) * *depth > one_mode_at_most;
  const double smaller = std::min(groups->share_high, 1 - groups->share_high);
  const bool is_wide = groups->high / groups->low - 1 > worth_a_word;
  const bool counts = is_deep && is_wide && smaller >= smallest_group && groups->separation > apart;
  return counts ? groups : std::nullopt;
}

/// Far from the median, or from that of their own group where there are two.
std::optional<Outliers> outliers(std::span<const double> samples, double middle,
                                 const std::optional<TwoGroups>& groups) {
  const double spread = scaled_deviation(samples);
  Outliers found;
  double furthest = 0;
  for (const double sample : samples) {
    const bool is_high = groups && sample > (groups->low + groups->high) / 2;
    const double centre = !groups ? middle : is_high ? groups->high : groups->low;
    const double limit = far * (!groups   ? spread
                                : is_high ? groups->spread_high
                                          : groups->spread_low);
    const double distance = std::abs(sample - centre);
    if (!(limit > 0) || distance <= limit) continue;
    ++found.count;
    if (distance <= furthest) continue;
    furthest = distance;
    found.furthest = sample / middle;
  }
  if (found.count == 0) return std::nullopt;
  return found;
}

std::vector<std::string> sentences_of(const SampleFlags& flags, std::size_t samples) {
  std::vector<std::string> sentences;
  if (flags.drift) {
    sentences.push_back(fmt::format("steps became {} {} while they were measured",
                                    units::format_percent(std::abs(flags.drift->change)),
                                    flags.drift->change > 0 ? "slower" : "faster"));
  }
  if (flags.bimodal) {
    sentences.push_back(
        fmt::format("steps are of two kinds: {} of them take {} longer than the others",
                    units::format_percent(flags.bimodal->share_high),
                    units::format_percent(flags.bimodal->high / flags.bimodal->low - 1)));
  }
  if (flags.outliers) {
    sentences.push_back(
        fmt::format("{} of {} steps lie{} far from the others, up to {:.2f} times the median",
                    flags.outliers->count, samples, flags.outliers->count == 1 ? "s" : "",
                    flags.outliers->furthest));
  }
  return sentences;
}

}  // namespace

SampleFlags sample_flags(std::span<const double> samples) {
  SampleFlags flags;
  const auto middle = median(samples);
  if (samples.size() < fewest_flagged || !middle || !(std::ranges::min(samples) > 0)) return flags;
  flags.trend = trend(samples);
  if (flags.trend && flags.trend->probability < by_chance &&
      std::abs(flags.trend->change) > worth_a_word) {
    flags.drift = flags.trend;
  }
  flags.bimodal = bimodal(samples);
  flags.outliers = outliers(samples, *middle, flags.bimodal);
  flags.sentences = sentences_of(flags, samples.size());
  return flags;
}

}  // namespace isoscale::analysis
