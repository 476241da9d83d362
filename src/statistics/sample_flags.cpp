// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "statistics/sample_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <vector>

#include "statistics/estimate.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::statistics {
namespace {

/// Returns the rank of each sample by size, from 1; equal samples share the mean of their ranks.
std::vector<double> mid_ranks(std::span<const double> samples) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return samples[i]; });
  std::vector<double> ranks(samples.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && samples[order[end]] == samples[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<double>(begin + end + 1) / 2;
    }
    begin = end;
  }
  return ranks;
}

constexpr std::size_t fewest_blocks = 8, most_blocks = 256;

/// Returns the Theil-Sen slope: the median of the slopes of all pairs of samples, as change from
/// one sample to the next.
double slope_of(std::span<const double> samples) {
  std::vector<double> slopes;
  slopes.reserve(samples.size() * (samples.size() - 1) / 2);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t j = i + 1; j < samples.size(); ++j) {
      slopes.push_back((samples[j] - samples[i]) / static_cast<double>(j - i));
    }
  }
  return *median(slopes);
}

/// Returns the two-sided p-value of Kendall's S = sum of sign(x_j - x_i) over i < j, with the
/// continuity correction.
double mann_kendall(std::span<const double> samples) {
  double s = 0;
  std::map<double, double> ties;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    ++ties[samples[i]];
    for (std::size_t j = i + 1; j < samples.size(); ++j) {
      s += static_cast<double>(samples[j] > samples[i]) -
           static_cast<double>(samples[j] < samples[i]);
    }
  }
  const auto term = [](double n) { return n * (n - 1) * (2 * n + 5); };
  double variance = term(static_cast<double>(samples.size()));
  for (const auto& [value, count] : ties) variance -= term(count);
  if (!(variance > 0)) return 1;
  const double z = std::max(0.0, std::abs(s) - 1) / std::sqrt(variance / 18);
  return std::erfc(z / std::numbers::sqrt2);
}

constexpr std::size_t fewest_in_modes = 4;  ///< samples that are needed to look for several modes
/// The standard deviation of a normal distribution divided by its median absolute deviation.
constexpr double deviations_per_mad = 1.4826;

/// Returns the samples sorted; empty if there are too few to judge or one is not finite.
std::vector<double> sorted_finite(std::span<const double> samples) {
  if (samples.size() < fewest_in_modes || !all_finite(samples)) return {};
  std::vector<double> sorted{samples.begin(), samples.end()};
  std::ranges::sort(sorted);
  return sorted;
}

/// A jump of a distribution function at x: its value just below x (foot) and at x (head).
struct Step {
  double x = 0, foot = 0, head = 0;
};

/// Returns the jumps of the (cumulative) distribution function of the samples.
std::vector<Step> distribution(std::span<const double> sorted) {
  std::vector<Step> steps;
  const auto n = static_cast<double>(sorted.size());
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::size_t end = begin;
    while (end < sorted.size() && sorted[end] == sorted[begin]) ++end;
    steps.push_back({.x = sorted[begin],
                     .foot = static_cast<double>(begin) / n,
                     .head = static_cast<double>(end) / n});
    begin = end;
  }
  return steps;
}

/// The convex or concave hull of a part of a distribution function: its height at every jump of the
/// part, and the indices of the jumps where it has a corner.
struct Hull {
  std::vector<double> at;
  std::vector<std::size_t> touches;
};

/// Returns the hull of the points (x, y) of a part: their greatest convex minorant if side is 1,
/// their least concave majorant if it is -1.
Hull hull(std::span<const Step> part, double Step::*y, double side) {
  Hull result;
  std::vector<std::size_t>& corners = result.touches;
  const auto height = [&](std::size_t i) { return side * (part[i].*y); };
  for (std::size_t i = 0; i < part.size(); ++i) {
    while (corners.size() >= 2) {
      const std::size_t b = corners.back();
      const std::size_t a = corners[corners.size() - 2];
      const double turn = (part[b].x - part[a].x) * (height(i) - height(a)) -
                          (part[i].x - part[a].x) * (height(b) - height(a));
      if (turn > 0) break;
      corners.pop_back();
    }
    corners.push_back(i);
  }
  result.at.resize(part.size());
  for (std::size_t c = 0; c + 1 < corners.size(); ++c) {
    const std::size_t a = corners[c];
    const std::size_t b = corners[c + 1];
    for (std::size_t i = a; i <= b; ++i) {
      const double way = (part[i].x - part[a].x) / (part[b].x - part[a].x);
      result.at[i] = side * (height(a) + way * (height(b) - height(a)));
    }
  }
  if (corners.size() == 1) result.at[0] = side * height(0);
  return result;
}

/// An interval that contains the mode of a distribution; `begin` and `end` are indices of jumps of
/// the distribution function. The next round of the search looks only there. `distance` is the
/// largest distance between the convex minorant and the concave majorant.
struct Modal {
  std::size_t begin = 0, end = 0;
  double distance = 0;
};

/// Finds the largest distance between the hulls, which is always at a corner of one hull, and
/// returns the part that this corner bounds. A corner of the minorant begins the part, which ends
/// at the majorant's first corner at or after it. A corner of the majorant ends the part, which
/// begins at the minorant's last corner at or before it.
Modal modal_part(const Hull& minorant, const Hull& majorant) {
  Modal modal{.begin = 0, .end = minorant.at.size() - 1, .distance = -1};
  for (const std::size_t corner : minorant.touches) {
    const double distance = majorant.at[corner] - minorant.at[corner];
    if (distance <= modal.distance) continue;
    const auto next = std::ranges::lower_bound(majorant.touches, corner);
    modal = {.begin = corner, .end = *next, .distance = distance};
  }
  for (const std::size_t corner : majorant.touches) {
    const double distance = majorant.at[corner] - minorant.at[corner];
    if (distance <= modal.distance) continue;
    const auto after = std::ranges::upper_bound(minorant.touches, corner);
    modal = {.begin = *(after - 1), .end = corner, .distance = distance};
  }
  return modal;
}

constexpr std::size_t fewest_flagged = 8;
constexpr double by_chance = 0.005;        // a trend is reported if its p-value is below this
constexpr double worth_a_word = 0.01;      // smaller relative differences are not reported
constexpr double one_mode_at_most = 0.65;  // 99.5% of uniform samples have a lower sqrt(n) * dip
constexpr double smallest_group = 0.05;    // a mode has at least this share of the samples
constexpr double apart = 2;                // Ashman's D of two modes must be above this
constexpr double far = 5;                  // outlier limit in scaled median absolute deviations

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

/// Finds the samples that are far from the median, or from the median of the nearer group if there
/// are two; absent if there are none.
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

std::optional<ChangePoint> change_point(std::span<const double> samples) {
  if (samples.size() < 2 || !all_finite(samples)) return std::nullopt;
  const auto n = static_cast<double>(samples.size());
  const std::vector<double> ranks = mid_ranks(samples);
  ChangePoint found{.first = 1};
  double largest = -1;
  double sum = 0;
  for (std::size_t t = 1; t < samples.size(); ++t) {
    sum += ranks[t - 1];
    const double distance = std::abs(2 * sum - static_cast<double>(t) * (n + 1));
    if (distance > largest) {
      largest = distance;
      found.first = t;
    }
  }
  found.probability = std::min(1.0, 2 * std::exp(-6 * largest * largest / (n * n * n + n * n)));
  return found;
}

std::size_t last_change(std::span<const double> samples, double smallest) {
  constexpr double certain = 0.01;
  std::size_t last = 0;
  while (const auto change = change_point(samples.subspan(last))) {
    if (change->probability >= certain) break;
    const auto rest = samples.subspan(last);
    const auto before = median(rest.first(change->first));
    const auto after = median(rest.subspan(change->first));
    if (!before || !after || !(std::abs(*before - *after) > smallest * std::abs(*after))) break;
    last += change->first;
  }
  return last;
}

std::optional<Trend> trend(std::span<const double> samples) {
  const auto middle = median(samples);
  if (samples.size() < fewest_blocks || !middle || !(*middle > 0)) return std::nullopt;
  const std::size_t least = (samples.size() + most_blocks - 1) / most_blocks;
  const double first_slope = slope_of(block_means(samples, least)) / static_cast<double>(least);
  std::vector<double> residuals{samples.begin(), samples.end()};
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    residuals[i] -= first_slope * static_cast<double>(i);
  }
  const std::size_t length = std::max(least, block_length(residuals));
  const std::vector<double> means = block_means(samples, length);
  if (means.size() < fewest_blocks) return std::nullopt;
  const double slope = slope_of(means) / static_cast<double>(length);
  return Trend{.change = slope * static_cast<double>(samples.size() - 1) / *middle,
               .probability = mann_kendall(means)};
}

double scaled_deviation(std::span<const double> samples) {
  const double middle = median(samples).value_or(0);
  std::vector<double> distances;
  distances.reserve(samples.size());
  for (const double sample : samples) distances.push_back(std::abs(sample - middle));
  return deviations_per_mad * median(distances).value_or(0);
}

std::optional<double> dip(std::span<const double> samples) {
  const std::vector<double> sorted = sorted_finite(samples);
  if (sorted.empty()) return std::nullopt;
  const std::vector<Step> steps = distribution(sorted);
  if (steps.size() == 1) return 0.0;
  std::span<const Step> part = steps;
  // `twice` grows from round to round until it is twice the dip. In each round `part` is the
  // interval that must contain the mode of the closest distribution.
  double twice = 1 / static_cast<double>(sorted.size());
  while (part.size() > 1) {
    const Hull minorant = hull(part, &Step::foot, 1);
    const Hull majorant = hull(part, &Step::head, -1);
    const Modal modal = modal_part(minorant, majorant);
    if (modal.distance <= twice) break;
    double outside = 0;
    for (std::size_t i = 0; i <= modal.begin; ++i) {
      outside = std::max(outside, part[i].head - minorant.at[i]);
    }
    for (std::size_t i = modal.end; i < part.size(); ++i) {
      outside = std::max(outside, majorant.at[i] - part[i].foot);
    }
    twice = std::max(twice, outside);
    if (modal.begin == 0 && modal.end + 1 == part.size()) break;
    part = part.subspan(modal.begin, modal.end - modal.begin + 1);
  }
  return twice / 2;
}

std::optional<TwoGroups> two_groups(std::span<const double> samples) {
  const std::vector<double> sorted = sorted_finite(samples);
  if (sorted.empty() || sorted.front() == sorted.back()) return std::nullopt;
  const std::size_t n = sorted.size();
  std::vector<double> sums(n + 1, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    sums[i + 1] = sums[i] + (sorted[i] - sorted[n / 2]);  // less the median, to keep sums small
  }
  // Returns the sum of the absolute deviations of sorted samples `begin` to `end` - 1 from their
  // median: the sum of their upper half minus that of their lower half.
  const auto scatter = [&](std::size_t begin, std::size_t end) {
    const std::size_t half = (end - begin) / 2;
    return (sums[end] - sums[end - half]) - (sums[begin + half] - sums[begin]);
  };
  std::size_t cut = 1;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < n; ++i) {
    const double both = scatter(0, i) + scatter(i, n);
    if (both < least) {
      least = both;
      cut = i;
    }
  }
  const auto lower = std::span{sorted}.first(cut);
  const auto upper = std::span{sorted}.subspan(cut);
  TwoGroups groups{.low = *median(lower),
                   .high = *median(upper),
                   .spread_low = scaled_deviation(lower),
                   .spread_high = scaled_deviation(upper),
                   .share_high = static_cast<double>(n - cut) / static_cast<double>(n)};
  groups.separation = std::sqrt(2.0) * (groups.high - groups.low) /
                      std::hypot(groups.spread_low, groups.spread_high);
  return groups;
}

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

}  // namespace isoscale::statistics
