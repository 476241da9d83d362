// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "results/run_data.hpp"

/// The state of devices while a point was measured: pure functions over what was sampled, which
/// tell what can be concluded from it (files may be damaged, or written by others).
namespace isoscale::analysis {

/// A level is what it is at a time; of a counter, only the difference of two samples means
/// anything.
enum class QuantityKind : std::uint8_t { level, counter, bits };

struct Quantity {
  std::string_view unit;  ///< "" = not known: any
  QuantityKind kind = QuantityKind::level;
};
/// As docs/device-state.md lists them; of others, names that end in _bytes or _errors are counters.
[[nodiscard]] Quantity quantity_of(std::string_view name);

/// Says why a series is useless, as the end of a sentence: "its times do not rise"; "" when it is
/// not. It has samples, finite values and times, times that rise by a nanosecond at least and the
/// unit of its quantity; counters do not fall; of quantities that are known, no level is below 0,
/// no utilisation above 1, and nothing is busy for longer than it was watched.
[[nodiscard]] std::string_view flaw_of(const results::DeviceSeries& series);

struct UsableSeries {
  std::vector<const results::DeviceSeries*> series;  ///< not owned: of the point
  std::vector<std::string> left_out;  ///< a sentence per reason; texts of the file not escaped
  /// The same by rank, device and quantity.
  std::map<std::tuple<int, std::string_view, std::string_view>, const results::DeviceSeries*>
      by_name{};

  /// Null where there is none.
  [[nodiscard]] const results::DeviceSeries* find(int rank, std::string_view device,
                                                  std::string_view quantity) const {
    const auto found = by_name.find({rank, device, quantity});
    return found == by_name.end() ? nullptr : found->second;
  }
};
/// Gives the point's series without a flaw, in order; of several about the same quantity of one
/// rank's device the first.
[[nodiscard]] UsableSeries usable_series(const results::PointData& point);

/// The first usable series of a rank's device; null where there is none. Not owned.
[[nodiscard]] const results::DeviceSeries* find_series(const results::PointData& point, int rank,
                                                       const std::string& device,
                                                       const std::string& quantity);

/// The bits that a sample holds; none where it is no number that a double keeps bit by bit.
[[nodiscard]] std::optional<std::uint64_t> sampled_bits(double sample);

/// The names of the reasons among `bits` that hold clocks down.
[[nodiscard]] std::vector<std::string_view> reason_names(std::uint64_t bits);

/// A reason that is worth a word.
struct HeldDown {
  std::string_view reason;  ///< "hardware thermal slowdown"
  double share = 0;         ///< of the samples
};

/// Finds what held clocks down in a series of throttle_reasons, from `begin` seconds on. Reasons of
/// hardware and temperature count whenever they are seen, others (software power cap, sync boost)
/// from a tenth of the samples. Idleness and settings by an administrator do not count.
[[nodiscard]] std::vector<HeldDown> held_down(const results::DeviceSeries& series, double begin);

/// One sampled quantity of one device.
struct SeriesSummary {
  int rank = 0;  ///< of the point
  std::string device{}, quantity{}, unit{};
  /// Figures of the samples after warm-up (of all where there are none); absent for counters, of
  /// which only the difference between first and last means anything, and for sets of bits.
  std::optional<double> minimum{}, median{}, maximum{};
  double first = 0, last = 0;  ///< of all samples
  std::size_t samples = 0;
};

/// The energy that a point's devices took from the mains: those that compute, which are all its
/// GPUs, or the CPU packages and their memory of all its nodes in a run on the host. A node's
/// packages count as a whole, also cores that no rank runs on.
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

/// Gives the state of a point that is ok and was sampled; else an empty one.
[[nodiscard]] DeviceState device_state(const results::RunData& run,
                                       const results::PointData& point);

/// Seconds from the begin of the first step until warm-up had ended: its steps, each as long as its
/// slowest rank.
[[nodiscard]] double warm_up_seconds(const results::PointData& point);

/// Power of the point's computing devices over the loop. Each device's comes from its energy
/// counter, else from the integral of its power over time (trapezoids). There is none unless every
/// device gave one over at least a second (GPUs refresh their counters some ten times a second).
[[nodiscard]] Energy energy_of(const results::RunData& run, const results::PointData& point);

/// Warns of a clock that changed, reasons to slow down, and errors that were counted within the
/// point.
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
