// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>

namespace isoscale::analysis {

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

}  // namespace isoscale::analysis
