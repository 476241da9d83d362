// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>

/// Finds changes of a series over time: a change of level at one place, and a steady trend.
namespace isoscale::statistics {

struct ChangePoint {
  std::size_t first = 0;   ///< the first sample after the change; 0 < first < n
  double probability = 0;  ///< of a change as clear as this among samples without one
};

/// Returns the most likely place of one change of level (Pettitt: Appl. Statist. 28, 1979): with
/// mid-ranks R_i, K is the largest |2 (R_1 + ... + R_t) - t (n + 1)|, and the probability is about
/// 2 exp(-6 K^2 / (n^3 + n^2)). It assumes independent samples. Absent below 2 samples and for
/// values that are not finite.
[[nodiscard]] std::optional<ChangePoint> change_point(std::span<const double> samples);

/// Returns the first sample after the last change that counts; 0 = none. A change counts if it is
/// improbable by chance (below 1%) and the medians of the two sides differ by more than `smallest`,
/// relative to the later one; the samples after each change found are searched again. No change can
/// be seen in fewer than 16 samples.
[[nodiscard]] std::size_t last_change(std::span<const double> samples, double smallest);

struct Trend {
  double change = 0;       ///< from the first sample to the last, relative to their median
  double probability = 0;  ///< of a trend as clear as this among samples without one
};

/// Returns the trend by the Mann-Kendall test (Mann 1945, Kendall 1975; normal approximation with
/// the correction for ties) and the Theil-Sen slope on means of blocks: there are no more than 256
/// blocks, long enough that the samples without the slope do not correlate from block to block
/// (trend-free, after Yue et al.: Hydrol. Process. 16, 2002). Absent below 8 blocks, for samples
/// that are not finite and for a median that is not above 0.
[[nodiscard]] std::optional<Trend> trend(std::span<const double> samples);

}  // namespace isoscale::statistics
