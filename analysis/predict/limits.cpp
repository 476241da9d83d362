// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "analysis/predict/forecast.hpp"
#include "base/text.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

/// Successive points of a curve with one limit.
struct Stretch {
  std::string limit;
  int from = 0, to = 0;  ///< ranks
  double share = 0;      ///< of the step, at `to`
};

double share_of(const Forecast& forecast) {
  const auto& lost = forecast.waterfall->lost;
  const auto found = std::ranges::find(lost, forecast.limit, &LostTime::cause);
  return found == lost.end() ? 0 : found->seconds / forecast.waterfall->measured;
}

std::vector<Stretch> stretches(const ForecastCurve& curve) {
  std::vector<Stretch> result;
  for (const Forecast& point : curve.points) {
    if (!point.waterfall) continue;
    if (result.empty() || result.back().limit != point.limit) {
      result.push_back({.limit = point.limit, .from = point.ranks});
    }
    result.back().to = point.ranks;
    result.back().share = share_of(point);
  }
  return result;
}

std::string what(const Stretch& stretch) {
  if (stretch.limit.empty()) return "nothing costs a thousandth of the step";
  return fmt::format("{} costs most ({} of the step on {})", stretch.limit,
                     units::format_percent(stretch.share), stretch.to);
}

std::string where(const std::vector<Stretch>& all, std::size_t i) {
  const Stretch& at = all[i];
  if (all.size() == 1)
    return at.from == at.to ? fmt::format("on {}", base::counted(at.to, "rank")) : "all along";
  if (i == 0) return fmt::format("up to {}", base::counted(at.to, "rank"));
  if (i + 1 == all.size()) return fmt::format("from {} on", base::counted(at.from, "rank"));
  if (at.from == at.to) return fmt::format("on {}", base::counted(at.to, "rank"));
  return fmt::format("from {} to {} ranks", at.from, at.to);
}

}  // namespace

std::vector<std::string> limit_sentences(const ForecastCurve& curve) {
  const std::vector<Stretch> all = stretches(curve);
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sentences.push_back(fmt::format("{}: {}", where(all, i), what(all[i])));
  }
  return sentences;
}

}  // namespace isoscale::analysis
