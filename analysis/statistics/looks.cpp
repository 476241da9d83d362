// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/statistics/looks.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t nodes = 129;  // of Simpson's rule; odd

double density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }

/// Weights of Simpson's rule over [-bound, bound].
std::array<double, nodes> simpson(double bound) {
  const double step = 2 * bound / (nodes - 1);
  std::array<double, nodes> weights{};
  for (std::size_t i = 0; i < nodes; ++i) {
    const bool is_end = i == 0 || i + 1 == nodes;
    weights[i] = step / 3 * (is_end ? 1 : i % 2 == 1 ? 4 : 2);
  }
  return weights;
}

/// Probability that a stationary Gaussian chain stays within +-bound at `looks` looks, looks >= 2.
double stays_within(double bound, int looks, double correlation) {
  const std::array<double, nodes> weights = simpson(bound);
  const auto at = [&](std::size_t i) {
    return bound * (2 * static_cast<double>(i) / (nodes - 1) - 1);
  };
  const double spread = std::sqrt(1 - correlation * correlation);
  std::vector<double> passage(nodes * nodes);  // [to][from], weighted
  std::array<double, nodes> inside{};          // density of chains that have stayed within
  for (std::size_t to = 0; to < nodes; ++to) {
    inside[to] = density(at(to));
    for (std::size_t from = 0; from < nodes; ++from) {
      passage[to * nodes + from] =
          weights[from] * density((at(to) - correlation * at(from)) / spread) / spread;
    }
  }
  for (int look = 1; look < looks; ++look) {
    std::array<double, nodes> next{};
    for (std::size_t to = 0; to < nodes; ++to) {
      for (std::size_t from = 0; from < nodes; ++from) {
        next[to] += passage[to * nodes + from] * inside[from];
      }
    }
    inside = next;
  }
  double probability = 0;
  for (std::size_t i = 0; i < nodes; ++i) probability += weights[i] * inside[i];
  return probability;
}

}  // namespace

double nominal_confidence(int planned, double growth) {
  // Steps of the integration must resolve the passage from one look to the next.
  constexpr double least_growth = 1.02;
  if (planned <= 1 || !(growth >= least_growth)) return plain_confidence;
  const double correlation = std::sqrt(1 / growth);
  double low = 1.9;
  double high = 6;
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + high) / 2;
    (stays_within(middle, planned, correlation) < plain_confidence ? low : high) = middle;
  }
  return std::erf((low + high) / 2 / std::numbers::sqrt2);
}

double confidence_of(const results::PointData& point) {
  return nominal_confidence(point.looks.planned, point.looks.growth);
}

double Confidences::of(const results::PointData& point) {
  const auto [at, is_new] = known_.try_emplace({point.looks.planned, point.looks.growth}, 0);
  if (is_new) at->second = confidence_of(point);
  return at->second;
}

std::string out_of_time(const results::PointData& point, const std::optional<Estimate>& step_time) {
  if (point.stopped_because != "max-time") return "";
  const auto width = step_time ? relative_half_width(*step_time) : std::nullopt;
  if (!width) return "time ran out before an interval was known";
  return fmt::format("out of time at ±{}", units::format_percent(*width));
}

}  // namespace isoscale::analysis
