// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "results/run_data.hpp"

/// What the devices did while a point was measured; pure functions over what was sampled.
namespace isoscale::analysis {

/// One sampled quantity of one device.
struct SeriesSummary {
  int rank = 0;  ///< of the point
  std::string device{}, quantity{}, unit{};
  /// Of the samples after warm-up (of all where there are none); absent for counters, of which only
  /// the difference between first and last means anything, and for sets of bits.
  std::optional<double> minimum{}, median{}, maximum{};
  double first = 0, last = 0;  ///< of all samples
  std::size_t samples = 0;
};

/// What a point's devices took from the mains: those that compute, which are all its GPUs, or the
/// CPU packages and their memory of all its nodes in a run on the host. A node's packages count as
/// a whole, also cores that no rank runs on.
struct Energy {
  std::string of;                          ///< "GPUs", "CPU packages"
  std::optional<double> power;             ///< W, mean over the loop, sum over devices
  std::optional<double> joules;            ///< power x measured_seconds
  std::optional<double> joules_per_step;   ///< over all steps of the loop, warm-up included
  std::optional<double> joules_per_token;  ///< per unit of work
  std::string missing;                     ///< why there is none; "" when there is one
};

/// The devices that compute, and what is worth a warning about any.
struct DeviceState {
  std::vector<SeriesSummary> series;
  Energy energy;
  std::optional<double> clock;        ///< Hz, median over devices of their medians
  std::optional<double> clock_min;    ///< Hz, lowest sample of any device
  std::optional<double> temperature;  ///< K, highest sample of any device
  std::optional<double> utilisation;  ///< mean over devices; 1 = always busy
  std::vector<std::string> warnings;  ///< sentences; texts of the file in them are not escaped
};

/// Of a point that is ok and was sampled; else empty.
[[nodiscard]] DeviceState device_state(const results::RunData& run,
                                       const results::PointData& point);

/// Seconds from the begin of the first step until warm-up had ended: its steps, each as long as its
/// slowest rank.
[[nodiscard]] double warm_up_seconds(const results::PointData& point);
/// Power of the point's computing devices over the loop. Each device's comes from its energy
/// counter, else from the integral of its power over time (trapezoids). There is none unless every
/// device gave one over at least a second (GPUs refresh their counters some ten times a second).
[[nodiscard]] Energy energy_of(const results::RunData& run, const results::PointData& point);

/// A clock that changed, reasons to slow down, and errors that were counted within the point.
///
/// A clock changed when the medians of its first and last third of samples differ by more than 3%
/// (three samples in each), or when more than a tenth of at least ten samples lie below 0.9 of the
/// median. Samples of warm-up do not count, nor those of an idle device: a GPU that says so, and
/// CPUs that were busy for less than 80% of the time since the sample before; without busy_time
/// nothing is said about CPUs.
///
/// Reasons to slow down: those of hardware and temperature whenever seen, others (software power
/// cap, sync boost) from a tenth of the samples; idleness and settings by an administrator are
/// none.
///
/// Last, what was left out because nothing can be concluded from it.
[[nodiscard]] std::vector<std::string> device_warnings(const results::PointData& point);

}  // namespace isoscale::analysis
