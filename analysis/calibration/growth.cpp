// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/calibration/growth.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <utility>

namespace isoscale::analysis {
namespace {

using results::CalibrationCurve;
using results::CalibrationGrowth;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

struct Sample {
  double ranks = 0, latency = 0;
};

struct LawFit {
  double base = 0, slope = 0;
  double error = std::numeric_limits<double>::infinity();  ///< sum of squared relative residuals
};

/// Weighted least squares of latency = base + slope * law(ranks), weights 1 / latency^2.
template <class Law>
LawFit fit_law(std::span<const Sample> samples, Law law) {
  double weights = 0, x_mean = 0, y_mean = 0;
  for (const Sample& at : samples) {
    const double weight = 1 / (at.latency * at.latency);
    weights += weight;
    x_mean += weight * law(at.ranks);
    y_mean += weight * at.latency;
  }
  x_mean /= weights;
  y_mean /= weights;
  double covariance = 0, variance = 0;
  for (const Sample& at : samples) {
    const double weight = 1 / (at.latency * at.latency);
    covariance += weight * (law(at.ranks) - x_mean) * (at.latency - y_mean);
    variance += weight * (law(at.ranks) - x_mean) * (law(at.ranks) - x_mean);
  }
  LawFit fit{.base = 0, .slope = variance > 0 ? covariance / variance : 0, .error = 0};
  fit.base = y_mean - fit.slope * x_mean;
  for (const Sample& at : samples) {
    const double off = (fit.base + fit.slope * law(at.ranks)) / at.latency - 1;
    fit.error += off * off;
  }
  return fit;
}

void add_law(CalibrationGrowth& growth) {
  std::vector<Sample> samples;
  for (std::size_t i = 0; i < growth.members.size(); ++i) {
    if (!std::isnan(growth.latency[i])) {
      samples.push_back(
          {.ranks = static_cast<double>(growth.members[i]), .latency = growth.latency[i]});
    }
  }
  if (samples.size() < 2) return;
  const LawFit by_log = fit_law(samples, [](double n) { return std::log2(n); });
  const LawFit by_count = fit_law(samples, [](double n) { return n; });
  const bool logarithmic = samples.size() < 3 || by_log.error <= by_count.error;
  if (samples.size() >= 3) growth.law = logarithmic ? "log2 n" : "n";
  growth.base = logarithmic ? by_log.base : by_count.base;
  growth.slope = logarithmic ? by_log.slope : by_count.slope;
}

}  // namespace

std::vector<CalibrationGrowth> growth_of(std::span<const CalibrationCurve> curves) {
  const auto kind = [](const CalibrationCurve& at) {
    return std::tie(at.op, at.dtype, at.link_class, at.implementation);
  };
  std::vector<CalibrationGrowth> all;
  for (const CalibrationCurve& first : curves) {
    std::vector<const CalibrationCurve*> like;
    for (const CalibrationCurve& at : curves) {
      if (kind(at) == kind(first)) like.push_back(&at);
    }
    if (like.front() != &first) continue;
    std::ranges::stable_sort(like, {}, &CalibrationCurve::members);
    const auto [last, end] = std::ranges::unique(like, {}, &CalibrationCurve::members);
    like.erase(last, end);
    if (like.size() < 2) continue;
    CalibrationGrowth growth{.op = first.op,
                             .dtype = first.dtype,
                             .link_class = first.link_class,
                             .implementation = first.implementation};
    for (const CalibrationCurve* const at : like) {
      growth.members.push_back(at->members);
      growth.latency.push_back(at->latency ? at->latency->value : unknown);
      growth.bandwidth.push_back(at->bandwidth ? at->bandwidth->value : unknown);
    }
    const double factor = growth.bandwidth.back() / growth.bandwidth.front();
    if (std::isfinite(factor)) growth.bandwidth_factor = factor;
    add_law(growth);
    all.push_back(std::move(growth));
  }
  return all;
}

}  // namespace isoscale::analysis
