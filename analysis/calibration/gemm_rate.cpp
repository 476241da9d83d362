// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/calibration/gemm_rate.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "statistics/robust.hpp"

namespace isoscale::analysis {
namespace {

using results::GemmCeiling;
using results::GemmRate;

double distance(const GemmRate& a, const GemmRate& b) {
  const auto log_flop = [](const GemmRate& at) { return std::log(at.m * at.n * at.k * at.batch); };
  const auto log_least = [](const GemmRate& at) { return std::log(std::min({at.m, at.n, at.k})); };
  return std::hypot(log_flop(a) - log_flop(b), log_least(a) - log_least(b));
}

bool same_kind(const GemmRate& a, std::string_view dtype, std::string_view cache) {
  return a.dtype == dtype && a.cache == cache;
}

constexpr double same = 1e-9;  ///< of a distance: at one place

/// Rate of the nearest shape; of several as near, their geometric mean. Shapes at the place of
/// `but` are passed over: (m, k) and (k, m) are at one, and would speak for each other.
std::optional<double> nearest_rate(std::span<const GemmRate> gemms, const GemmRate& shape,
                                   const GemmRate* but) {
  double least = std::numeric_limits<double>::infinity();
  double log_sum = 0;
  int count = 0;
  for (const GemmRate& at : gemms) {
    if (!same_kind(at, shape.dtype, shape.cache)) continue;
    const double away = distance(at, shape);
    if (but != nullptr && (&at == but || away < same)) continue;
    if (away > least + same) continue;
    if (away < least - same) {
      least = away;
      log_sum = 0;
      count = 0;
    }
    log_sum += std::log(at.rate);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::exp(log_sum / count);
}

/// Cold shapes tell what a program meets whose operands come from memory.
std::string deciding_cache(std::span<const GemmRate> gemms, std::string_view dtype) {
  const bool cold =
      std::ranges::any_of(gemms, [&](const GemmRate& at) { return same_kind(at, dtype, "cold"); });
  if (cold) return "cold";
  const auto any = std::ranges::find(gemms, dtype, &GemmRate::dtype);
  return any == gemms.end() ? "" : any->cache;
}

}  // namespace

void add_held_out(std::vector<GemmRate>& gemms) {
  for (GemmRate& at : gemms) {
    const auto others = nearest_rate(gemms, at, &at);
    at.held_out = others ? std::optional{*others / at.rate - 1} : std::nullopt;
  }
}

std::vector<GemmCeiling> ceilings_of(std::span<const GemmRate> rows,
                                     std::span<const GemmRate> gemms) {
  std::map<std::string, const GemmRate*> best;
  for (const GemmRate& row : rows) {
    const GemmRate*& known = best[row.dtype];
    const bool is_labelled = !row.labels.empty();
    if (known == nullptr ||
        (is_labelled == !known->labels.empty() ? row.rate > known->rate : !is_labelled)) {
      known = &row;
    }
  }
  std::vector<GemmCeiling> ceilings;
  for (const auto& [dtype, row] : best) {
    std::vector<double> errors;
    for (const GemmRate& at : gemms) {
      if (!same_kind(at, dtype, deciding_cache(gemms, dtype)) || !at.held_out) continue;
      errors.push_back(std::log1p(*at.held_out));
    }
    GemmCeiling& ceiling = ceilings.emplace_back(GemmCeiling{.dtype = dtype,
                                                             .cache = row->cache,
                                                             .rate = row->rate,
                                                             .m = row->m,
                                                             .n = row->n,
                                                             .k = row->k,
                                                             .batch = row->batch,
                                                             .labels = row->labels});
    if (const auto error = promised_error(errors)) ceiling.error = std::expm1(*error);
  }
  return ceilings;
}

const GemmCeiling* ceiling_of(const results::CalibrationData& calibration, std::string_view dtype) {
  const auto found = std::ranges::find(calibration.ceilings, dtype, &GemmCeiling::dtype);
  return found == calibration.ceilings.end() ? nullptr : &*found;
}

std::optional<RatePrediction> predict_rate(const results::CalibrationData& calibration,
                                           const GemmRate& shape) {
  const GemmCeiling* const ceiling = ceiling_of(calibration, shape.dtype);
  if (ceiling == nullptr) return std::nullopt;
  GemmRate wanted = shape;
  wanted.cache = ceiling->cache;
  const auto rate = nearest_rate(calibration.gemms, wanted, nullptr);
  if (!rate) return std::nullopt;
  RatePrediction result{.rate = *rate, .lower = std::nullopt, .upper = std::nullopt};
  if (ceiling->error) {
    result.lower = *rate / (1 + *ceiling->error);
    result.upper = *rate * (1 + *ceiling->error);
  }
  return result;
}

}  // namespace isoscale::analysis
