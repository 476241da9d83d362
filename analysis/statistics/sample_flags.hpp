// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/statistics/modes.hpp"
#include "analysis/statistics/trend.hpp"

/// What a median and its interval do not tell of their samples. Nothing is removed for it.
namespace isoscale::analysis {

/// Samples further from the median than 5 scaled median absolute deviations; where there are two
/// groups, from that of the nearer one.
struct Outliers {
  std::size_t count = 0;
  double furthest = 0;  ///< relative to the median; 1.5 = half as long again
};

struct SampleFlags {
  std::optional<Trend> trend;          ///< as found, whether or not it is worth a word
  std::optional<Trend> drift;          ///< a trend with probability < 0.5% and of more than 1%
  std::optional<TwoGroups> bimodal;    ///< two groups that no single mode explains
  std::optional<Outliers> outliers;    ///< absent where there are none
  std::vector<std::string> sentences;  ///< one for each flag, for people
};

/// Of samples in the order taken, whose unit does not matter. Bimodal: sqrt(n) times the dip is
/// above 0.65, which a uniform distribution, the worst with one mode, exceeds in less than 1%; and
/// the groups' medians are more than 1% apart, the smaller group has 5% or more and Ashman's D is
/// above 2. Empty flags below 8 samples and for what is not finite or not above 0.
[[nodiscard]] SampleFlags sample_flags(std::span<const double> samples);

}  // namespace isoscale::analysis
