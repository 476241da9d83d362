// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "runner/solo.hpp"
#include "runner/step_loop.hpp"

namespace isoscale::runner {
namespace {

using workloads::Precision;

constexpr double traced_share = 0.3;             // of a case's budget, see play_case()
constexpr double case_seconds = 0.01;            // to prepare and compare a case
constexpr int warm_plays = 2, fewest_plays = 6;  // of a case, see play_case()
// Shares of --max-time that the timed plays of all cases take: where each is precise after six
// short ones, and where six of some take longer than their part.
constexpr double quick_share = 0.3, slow_share = 0.5;
constexpr int checked_steps = 2;  // before and after the loop, see StepCheck
/// Half of the interval of a normal distribution's median, for one sample and spread 1, at the 99.5%
/// that looking several times demands.
constexpr double units_of_median = 2.81 * 1.2533;
constexpr std::size_t most_steps = 100'000;  // that are played in thought

/// Rates that devices of the kind reach on the work of the workloads.
struct Rates {
  double bandwidth;        ///< of what a rank sends, B/s
  double fill;             ///< of its memory, B/s
  double communicator;     ///< to make one, seconds
  double twin;             ///< to build and compare, seconds
  double per_rank = 0.02;  ///< more of both for each rank of the point, seconds
};

Rates rates_of(std::string_view device) {
  if (device == "cuda") return {.bandwidth = 10e9, .fill = 100e9, .communicator = 1, .twin = 5};
  return {.bandwidth = 3e9, .fill = 1e9, .communicator = 0.02, .twin = 0.1};
}

/// FLOP/s of a rank's multiplications.
double flops_of(std::string_view device, Precision precision, int blas_threads) {
  if (device != "cuda") return (precision == Precision::f64 ? 50e9 : 100e9) * blas_threads;
  switch (precision) {
    case Precision::fp8:
    case Precision::f16:
    case Precision::bf16:
      return 100e12;
    case Precision::tf32:
      return 50e12;
    case Precision::f32:
    case Precision::f64:
      break;
  }
  return 10e12;
}

}  // namespace

units::Seconds total(const PointTime& time, units::Seconds loop) {
  return time.set_up + time.verification + time.stretch * std::max(loop, time.least) + time.after;
}

PointTime at_pace(const PointTime& time, double factor, units::Seconds max_time) {
  PointTime result = time;
  result.set_up = factor * time.set_up;
  result.verification = factor * time.verification;
  result.after = factor * time.after;
  result.least = factor * time.least;
  result.likely = std::max(factor * time.likely, result.least);
  result.most = std::max(max_time, result.likely);
  return result;
}

units::Seconds loop_time(units::Seconds step, const config::RunConfig& config) {
  const double spread = units_of_median * assumed_scatter;
  const Effort effort{.precision = config.precision,
                      .max_time = config.max_time,
                      .trace_steps = config.trace_steps,
                      .half_width =
                          [&](std::span<const double> samples, double) {
                            if (samples.size() < least_counted) return std::optional<double>{};
                            return std::optional{spread / std::sqrt(samples.size())};
                          },
                      .last_change = [](std::span<const double>, double) { return 0; }};
  StepLoop loop{effort};
  units::Seconds elapsed{0};
  while (loop.end().empty()) {
    if (loop.steps() > most_steps) return std::max(config.max_time, elapsed);
    const Block block = loop.next();
    elapsed += static_cast<double>(block.steps) * step;
    loop.played(block, std::vector<double>(block.steps, step.value()), elapsed);
  }
  return elapsed;
}

PointTime estimate(const PlannedPoint& point, const config::RunConfig& config,
                   std::string_view device) {
  if (!point.skip_reason.empty()) return {};
  const Rates rates = rates_of(device);
  const Load& load = point.load;
  const auto communicators = static_cast<double>(point.sent_by_axes.size());
  const double for_ranks = rates.per_rank * point.ranks;
  PointTime time;
  time.set_up =
      units::Seconds{load.sessions * (communicators * (rates.communicator + for_ranks) +
                                      static_cast<double>(load.memory.value()) / rates.fill)};
  if (point.workload->twin != nullptr) {
    time.verification = units::Seconds{rates.twin + for_ranks};
  }
  if (config.soak && !point.workload->is_bench()) {
    time.verification = time.verification + *config.soak;
  }
  const units::Seconds step = load.step.value_or(
      units::Seconds{load.flop / flops_of(device, point.request.precision, config.blas_threads) +
                     static_cast<double>(load.sent.value()) / rates.bandwidth});
  if (point.workload->is_bench()) {
    const units::Seconds cases{case_seconds * load.cases};
    time.likely = 1.0 * warm_plays * step + cases +
                  std::clamp(1.0 * fewest_plays * step, quick_share * config.max_time,
                             slow_share * config.max_time);
    time.least = std::min(time.likely, 1.0 * (warm_plays + fewest_plays) * step + cases);
    time.most = std::max(config.max_time, time.likely);
    time.stretch = 1 + traced_share;
    return time;
  }
  time.verification += 1.0 * checked_steps * step;
  if (config.trace_steps > 0) time.after = 1.0 * solo_plays(step, config.max_time) * step;
  time.likely = loop_time(step, config);
  time.least = std::min(1.0 * fewest_steps * step, time.likely);
  time.most = std::max(config.max_time, time.likely);
  return time;
}

}  // namespace isoscale::runner
