// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>

/// Changes of a series over time: a change of level at one place, and a steady trend.
namespace isoscale::statistics {

struct ChangePoint {
  std::size_t first = 0;   ///< the first sample after the change; 0 < first < n
  double probability = 0;  ///< of so clear a change among samples that never changed
};

/// The most likely place of one change of level (Pettitt: Appl. Statist. 28, 1979): with mid-ranks
/// R_i, K is the largest |2 (R_1 + ... + R_t) - t (n + 1)|, and the probability is about
/// 2 exp(-6 K^2 / (n^3 + n^2)). It takes samples as independent. Absent below 2 samples and for
/// what is not finite.
[[nodiscard]] std::optional<ChangePoint> change_point(std::span<const double> samples);

/// A change that counts: improbable by chance (below 1%), and the medians of the two sides differ
/// by more than `smallest`, relative to the later one. Returns the first sample after the last such
/// change, looked for again and again in what follows the one found; 0 = none. Nothing can be seen
/// in fewer than 16 samples.
[[nodiscard]] std::size_t last_change(std::span<const double> samples, double smallest);

struct Trend {
  double change = 0;       ///< from the first sample to the last, relative to their median
  double probability = 0;  ///< of so clear a trend among samples without one
};

/// Mann-Kendall test (Mann 1945, Kendall 1975; normal approximation with the correction for ties)
/// and Theil-Sen slope on means of blocks: no more than 256, and long enough that what remains of
/// the samples without the slope does not correlate from block to block (trend-free, after Yue et
/// al.: Hydrol. Process. 16, 2002). Absent below 8 blocks, for samples that are not finite and a
/// median that is not above 0.
[[nodiscard]] std::optional<Trend> trend(std::span<const double> samples);

}  // namespace isoscale::statistics
