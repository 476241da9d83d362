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

#include "results/records/run_data.hpp"

/// Tells the state of devices while a point was measured, from the samples in a run file, with pure
/// functions. They check which conclusions the samples allow, since files may be damaged or written
/// by other programs.
namespace isoscale::analysis::devices {

/// The kind of a quantity: the value of a level holds at one time; of a counter only the difference
/// of two samples has a meaning; bits are a set of flags.
enum class QuantityKind : std::uint8_t { level, counter, bits };

struct Quantity {
  std::string_view unit;  ///< "" = not known: any unit
  QuantityKind kind = QuantityKind::level;
};
/// Returns the kind and unit by docs/device-state.md. Unlisted names that end in _bytes or _errors
/// are counters.
[[nodiscard]] Quantity quantity_of(std::string_view name);

/// Returns why a series cannot be used, as the end of a sentence: "its times do not rise"; "" when
/// it can. A usable series has samples, finite values and times, times that rise by at least a
/// nanosecond, and the unit of its quantity; its counters do not fall. For known quantities no
/// level is below 0, no utilisation above 1, and no device is busy for longer than the time between
/// samples.
[[nodiscard]] std::string_view flaw_of(const results::DeviceSeries& series);

struct UsableSeries {
  std::vector<const results::DeviceSeries*> series;  ///< not owned: they belong to the point
  std::vector<std::string> left_out;  ///< a sentence per reason; texts of the file not escaped
  /// The series by rank, device and quantity.
  std::map<std::tuple<int, std::string_view, std::string_view>, const results::DeviceSeries*>
      by_name{};

  /// Returns null where there is none.
  [[nodiscard]] const results::DeviceSeries* find(int rank, std::string_view device,
                                                  std::string_view quantity) const {
    const auto found = by_name.find({rank, device, quantity});
    return found == by_name.end() ? nullptr : found->second;
  }
};
/// Returns the point's series that can be used, in order. Where several are about the same quantity
/// of the same rank's device, only the first is.
[[nodiscard]] UsableSeries usable_series(const results::PointData& point);

/// Returns the bits that a sample holds; absent where it is not an integer that a double holds
/// exactly.
[[nodiscard]] std::optional<std::uint64_t> sampled_bits(double sample);

/// Returns the names of those reasons in `bits` that lower clocks.
[[nodiscard]] std::vector<std::string_view> reason_names(std::uint64_t bits);

/// A reason for lowered clocks that is frequent enough to be reported.
struct HeldDown {
  std::string_view reason;  ///< "hardware thermal slowdown"
  double share = 0;         ///< share of the samples
};

/// Returns the reasons for lowered clocks in a series of throttle_reasons, from `begin` seconds on.
/// Reasons of hardware and temperature count whenever they are seen; others (software power cap,
/// sync boost) count from a tenth of the samples. Idleness and settings by an administrator do not
/// count.
[[nodiscard]] std::vector<HeldDown> held_down(const results::DeviceSeries& series, double begin);

/// One sampled quantity of one device.
struct SeriesSummary {
  int rank = 0;  ///< of the point
  std::string device{}, quantity{}, unit{};
  /// Statistics of the samples after warm-up (of all samples where there are none after it). Absent
  /// for counters, of which only the difference between first and last has a meaning, and for sets
  /// of bits.
  std::optional<double> minimum{}, median{}, maximum{};
  double first = 0, last = 0;  ///< over all samples
  std::size_t samples = 0;
};

/// The energy that the computing devices of a point used: all its GPUs, or, in a run on the host,
/// the CPU packages of all its nodes with their memory. A node's packages count as a whole,
/// including cores that no rank runs on.
struct Energy {
  std::string of;                          ///< "GPUs", "CPU packages"
  std::optional<double> power;             ///< W, mean over the loop, sum over devices
  std::optional<double> joules;            ///< power x measured_seconds
  std::optional<double> joules_per_step;   ///< over all steps of the loop, warm-up included
  std::optional<double> joules_per_token;  ///< per unit of work
  std::string missing;                     ///< why there is none; "" when there is one
};

/// The state of the devices that compute, and warnings about any device.
struct DeviceState {
  std::vector<SeriesSummary> series;
  Energy energy;
  std::optional<double> clock;        ///< Hz, median over devices of their medians
  std::optional<double> clock_min;    ///< Hz, lowest sample of any device
  std::optional<double> temperature;  ///< K, highest sample of any device
  std::optional<double> utilisation;  ///< mean over devices; 1 = always busy
  std::vector<std::string> warnings;  ///< sentences; texts of the file in them are not escaped
};

/// Returns the state of a point that is ok and was sampled; otherwise an empty one.
[[nodiscard]] DeviceState device_state(const results::RunData& run,
                                       const results::PointData& point);

/// Returns the seconds from the start of the first step to the end of warm-up: the sum of the
/// warm-up steps, each as long as its slowest rank.
[[nodiscard]] double warm_up_seconds(const results::PointData& point);

/// Returns the power of the point's computing devices over the loop. Each device's power comes from
/// its energy counter, else from the integral of its power over time (trapezoids). Absent unless
/// every device has one over at least a second (GPUs refresh their counters some ten times a
/// second).
[[nodiscard]] Energy energy_of(const results::RunData& run, const results::PointData& point);

/// Returns warnings about a clock that changed, reasons for lowered clocks, and errors that were
/// counted during the point.
///
/// A clock changed when the medians of its first and last third of samples differ by more than 3%
/// (three samples in each), or when more than a tenth of at least ten samples lie below 0.9 of the
/// median. Samples during warm-up do not count, nor those of an idle device: a GPU that reports
/// idleness, and CPUs that were busy for less than 80% of the time since the previous sample.
/// Without busy_time there are no warnings about the clocks of CPUs.
///
/// Reasons of hardware and temperature count whenever they are seen, others (software power cap,
/// sync boost) from a tenth of the samples; idleness and settings by an administrator do not count.
///
/// The last warnings name the series that cannot be used.
[[nodiscard]] std::vector<std::string> device_warnings(const results::PointData& point);

}  // namespace isoscale::analysis::devices
