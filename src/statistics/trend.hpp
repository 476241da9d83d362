// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>

/// Finds changes of a series over time: sudden changes of level, and steady trends.
namespace isoscale::statistics {

struct ChangePoint {
  std::size_t first = 0;   ///< the first sample after the change; 0 < first < n
  double probability = 0;  ///< of a change as clear as this among samples without one
};

/// Returns the most likely place of a single change of level (Pettitt: Appl. Statist. 28, 1979):
/// with mid-ranks R_i, K is the largest |2 (R_1 + ... + R_t) - t (n + 1)|, and the probability is
/// about 2 exp(-6 K^2 / (n^3 + n^2)). It assumes independent samples. Absent below 2 samples and
/// for values that are not finite.
[[nodiscard]] std::optional<ChangePoint> change_point(std::span<const double> samples);

/// Returns the index of the first sample after the last change of level; 0 = no change. A change
/// counts if its probability is below 1% and the medians before and after it differ by more than
/// `smallest`, as a share of the median after it. The samples after each change found are searched
/// again. In fewer than 16 samples no change is found.
[[nodiscard]] std::size_t last_change(std::span<const double> samples, double smallest);

struct Trend {
  double change = 0;       ///< from the first sample to the last, relative to their median
  double probability = 0;  ///< of a trend as clear as this among samples without one
};

/// Returns the trend of the means of blocks: its probability by the Mann-Kendall test (Mann 1945,
/// Kendall 1975; normal approximation with the correction for ties), its change by the Theil-Sen
/// slope. There are at most 256 blocks, which are long enough that, after the slope is subtracted
/// from the samples, the means of blocks do not correlate (trend-free, after Yue et al.: Hydrol.
/// Process. 16, 2002). Absent below 8 blocks, for samples that are not finite and for a median that
/// is not above 0.
[[nodiscard]] std::optional<Trend> trend(std::span<const double> samples);

}  // namespace isoscale::statistics
