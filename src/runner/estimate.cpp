// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/estimate.hpp"

#include <algorithm>

namespace isoscale::runner {
namespace {

using workloads::Precision;

constexpr double solo_share = 0.1;    // of the loop, see solo_plays()
constexpr double traced_share = 0.3;  // of a case's budget, see play_case()
constexpr double case_seconds = 0.1;  // that its fewest plays may take

/// What a device of the kind reaches at least on what the workloads do: low on purpose, so that the
/// estimate is rather too long.
struct Rates {
  double bandwidth;        ///< of what a rank sends, B/s
  double fill;             ///< of its memory, B/s
  double communicator;     ///< to make one, seconds
  double twin;             ///< to build and compare, seconds
  double per_rank = 0.02;  ///< more of both for each rank of the point, seconds
};

Rates rates_of(std::string_view device) {
  if (device == "cuda") return {.bandwidth = 10e9, .fill = 100e9, .communicator = 1, .twin = 5};
  return {.bandwidth = 0.5e9, .fill = 0.5e9, .communicator = 0.05, .twin = 0.5};
}

/// FLOP/s of a rank's multiplications.
double flops_of(std::string_view device, Precision precision, int blas_threads) {
  if (device != "cuda") return (precision == Precision::f64 ? 4e9 : 8e9) * blas_threads;
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
  return time.set_up + time.verification + time.stretch * std::max(loop, time.least);
}

PointTime at_pace(const PointTime& time, double factor, units::Seconds max_time) {
  PointTime result = time;
  result.set_up = factor * time.set_up;
  result.verification = factor * time.verification;
  result.least = factor * time.least;
  result.most = std::max(max_time, result.least);
  return result;
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
  if (point.workload->is_bench()) {
    time.least = units::Seconds{case_seconds * load.cases};
    time.stretch = 1 + traced_share;
  } else {
    const double step = load.flop / flops_of(device, point.request.precision, config.blas_threads) +
                        static_cast<double>(load.sent.value()) / rates.bandwidth;
    time.least = units::Seconds{fewest_steps * step};
    // Of the fewest steps, those without communication are more than a tenth.
    time.stretch = 1 + std::max(solo_share, 1.0 * fewest_solo_plays / fewest_steps);
  }
  time.most = std::max(config.max_time, time.least);
  return time;
}

}  // namespace isoscale::runner
