// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Finds properties of samples that a median and its interval do not show: changes of level over
/// time, steady trends, two modes, outliers. No sample is removed because of them.
namespace isoscale::statistics {

struct ChangePoint {
  std::size_t first = 0;   ///< the first sample after the change; 0 < first < n
  double probability = 0;  ///< p-value: probability of so clear a change if the level is constant
};

/// Returns the most likely single change of the samples' level (Pettitt: Appl. Statist. 28, 1979).
/// If R_i is the rank of sample i by size (equal samples share the mean of their ranks), K is the
/// largest |2 (R_1 + ... + R_t) - t (n + 1)| over all t, and the probability is about
/// 2 exp(-6 K^2 / (n^3 + n^2)). It assumes independent samples. Absent below 2 samples and for
/// values that are not finite.
[[nodiscard]] std::optional<ChangePoint> change_point(std::span<const double> samples);

/// Returns the index of the first sample after the last change of level; 0 = no change. A change
/// counts if its p-value is below 1% and the medians before and after it differ by more than
/// `smallest`, as a share of the median after it. The samples after each change found are searched
/// again. In fewer than 16 samples no change has so small a p-value.
[[nodiscard]] std::size_t last_change(std::span<const double> samples, double smallest);

struct Trend {
  double change = 0;       ///< from the first sample to the last, relative to their median
  double probability = 0;  ///< p-value: probability of so clear a trend if there is no trend
};

/// Returns the trend of the samples over time, computed from the means of blocks of consecutive
/// samples: its probability by the Mann-Kendall test (Mann 1945, Kendall 1975; normal approximation
/// with the correction for ties), its change by the Theil-Sen slope. There are at most 256 blocks.
/// They are long enough that their means do not correlate once the slope is subtracted from the
/// samples (trend-free, after Yue et al.: Hydrol. Process. 16, 2002). Absent below 8 blocks, for
/// samples that are not finite and for a median that is not above 0.
[[nodiscard]] std::optional<Trend> trend(std::span<const double> samples);

/// Returns Hartigan's dip: the distance between the samples' distribution and the closest one with
/// a single mode (J. A. Hartigan, P. M. Hartigan: Ann. Statist. 13, 1985), between 1 / 2n and 1/4.
/// Absent below 4 samples and for values that are not finite; 0 if all samples are equal.
[[nodiscard]] std::optional<double> dip(std::span<const double> samples);

/// Returns 1.4826 times the median absolute deviation, which is the standard deviation for normal
/// samples (Hampel: J. Am. Stat. Assoc. 69, 1974); 0 without samples, or if one is not finite.
[[nodiscard]] double scaled_deviation(std::span<const double> samples);

/// The division of samples into two groups with the least sum of absolute deviations from their own
/// medians. Squared deviations from means could make a single outlier a group of its own.
struct TwoGroups {
  double low = 0, high = 0;                ///< medians of the two groups
  double spread_low = 0, spread_high = 0;  ///< scaled median absolute deviations of the two groups
  double share_high = 0;                   ///< share of the samples that are in the higher group
  /// Ashman's D = sqrt(2) |m1 - m2| / sqrt(s1^2 + s2^2) (Ashman, Bird, Zepf: Astron. J. 108, 1994)
  /// of medians and spreads. It is infinite if both spreads are 0.
  double separation = 0;
};
/// Returns the two groups; absent below 4 samples, for values not finite, and if all are equal.
[[nodiscard]] std::optional<TwoGroups> two_groups(std::span<const double> samples);

/// Samples further from the median than 5 scaled median absolute deviations. If the samples are
/// bimodal, each one is compared with the median and the deviation of its nearer group. If that
/// deviation is 0, no sample compared with it counts as an outlier.
struct Outliers {
  std::size_t count = 0;
  double furthest = 0;  ///< the furthest sample divided by the median of all samples
};

struct SampleFlags {
  std::optional<Trend> trend;          ///< the trend found, even if it is too small for a flag
  std::optional<Trend> drift;          ///< the trend, if p < 0.5% and its change is above 1%
  std::optional<TwoGroups> bimodal;    ///< the two groups, if the samples are bimodal
  std::optional<Outliers> outliers;    ///< absent where there are none
  std::vector<std::string> sentences;  ///< one for each flag, for people
};

/// Judges samples in the order taken; their unit does not matter. They are bimodal if all of this
/// holds: sqrt(n) times the dip is above 0.65 (a uniform distribution, the worst with one mode,
/// exceeds it in less than 1% of cases), the groups' medians are more than 1% apart, the smaller
/// group has at least 5% of the samples, and Ashman's D is above 2. The flags are empty if there
/// are fewer than 8 samples, or if a value is not finite or not above 0.
[[nodiscard]] SampleFlags sample_flags(std::span<const double> samples);

}  // namespace isoscale::statistics
