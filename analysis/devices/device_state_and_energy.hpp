// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "results/records/run_data.hpp"

/// Computes, from the samples in a run file, the state that devices had while a point was measured.
/// The functions are pure. They check the samples first, since files may be damaged or written by
/// other programs.
namespace isoscale::analysis::devices {

/// The kind of a quantity. A level has a meaning at one time (temperature). A counter has a meaning
/// only as the difference of two samples (energy). Bits are a set of flags.
enum class QuantityKind : std::uint8_t { level, counter, bits };

struct Quantity {
  std::string_view unit;  ///< "" = the quantity is not known, so any unit is accepted
  QuantityKind kind = QuantityKind::level;
};
/// Returns the kind and unit of the quantity of this name (docs/device-state.md lists them). Names
/// that are not listed there are counters if they end in _bytes or _errors.
[[nodiscard]] Quantity quantity_of(std::string_view name);

/// Returns why a series cannot be used (docs/device-state.md has the reasons), as the end of a
/// sentence: "its times do not rise"; "" if it can. Values are plausible up to 1e24 (flags up to
/// any finite number) and times up to 1e12 s. Times rise if each is at least 1 ns after the
/// previous.
[[nodiscard]] std::string_view flaw_of(const results::DeviceSeries& series);

struct UsableSeries {
  std::vector<const results::DeviceSeries*> series;  ///< not owned: they belong to the point
  std::vector<std::string> left_out;  ///< a sentence for each reason, with device names as in the
                                      ///< file (not escaped)
  /// The same series by rank, device and quantity.
  std::map<std::tuple<int, std::string_view, std::string_view>, const results::DeviceSeries*>
      by_name{};

  /// Returns null if there is no such series.
  [[nodiscard]] const results::DeviceSeries* find(int rank, std::string_view device,
                                                  std::string_view quantity) const {
    const auto found = by_name.find({rank, device, quantity});
    return found == by_name.end() ? nullptr : found->second;
  }
};
/// Returns the series of a point that can be used, in their order; of several with the same rank,
/// device and quantity, only the first.
[[nodiscard]] UsableSeries usable_series(const results::PointData& point);

/// Returns the flags that a sample (a double) holds; absent unless it is a whole number from 0 to
/// 2^53, up to which a double holds every integer exactly.
[[nodiscard]] std::optional<std::uint64_t> sampled_bits(double sample);

/// Returns the names of the reasons for lowered clocks in `bits` that held_down() can report.
[[nodiscard]] std::vector<std::string_view> reason_names(std::uint64_t bits);

/// A reason for lowered clocks that is frequent enough to be reported.
struct HeldDown {
  std::string_view reason;  ///< "hardware thermal slowdown"
  double share = 0;         ///< share of the samples that have it
};

/// Returns the reasons for lowered clocks in a series of throttle_reasons, from `begin` seconds on.
/// Software power cap and sync boost are returned if at least a tenth of the samples have them, the
/// reasons of hardware or temperature if any sample has them. An idle GPU, clocks that an
/// administrator set, and limits of a display setting do not count as reasons.
[[nodiscard]] std::vector<HeldDown> held_down(const results::DeviceSeries& series, double begin);

/// One sampled quantity of one device.
struct SeriesSummary {
  const results::DeviceSeries* data = nullptr;  ///< usable; not owned: it belongs to the point
  /// Statistics of the samples after warm-up, or of all if there are none after it. Absent for
  /// counters, where only the last sample minus the first has a meaning, and for bits, which are
  /// flags and no numbers.
  std::optional<double> minimum{}, median{}, maximum{};
};

/// The energy that the computing devices of a point used during its measuring loop (all its steps,
/// warm-up included). The devices are all its GPUs. In a run on the host they are all CPU packages
/// of its nodes with their memory, including the parts that no rank runs on.
struct Energy {
  std::string of;                          ///< the devices: "GPUs", "CPU packages"
  std::optional<double> power;             ///< W, mean over the loop, sum over devices
  std::optional<double> joules;            ///< power x length of the loop
  std::optional<double> joules_per_step;   ///< over all steps of the loop, warm-up included
  std::optional<double> joules_per_token;  ///< per unit of the point's work, usually a token
  std::string missing;                     ///< why the energy is not known; "" if it is
};

/// The state of the devices that compute, and warnings about any device.
struct DeviceState {
  std::vector<SeriesSummary> series;
  Energy energy;
  std::optional<double> clock;        ///< Hz, median over devices of each device's median
  std::optional<double> clock_min;    ///< Hz, lowest sample of any device
  std::optional<double> temperature;  ///< K, highest sample of any device
  std::optional<double> utilisation;  ///< mean over devices; 1 = always busy
  std::vector<std::string> warnings;  ///< sentences, with texts as in the file (not escaped)
};

/// Returns the state of a point's devices; empty if the point is not ok or no device was sampled.
[[nodiscard]] DeviceState device_state(const results::RunData& run,
                                       const results::PointData& point);

/// Returns the seconds from the start of the first step to the end of warm-up: the sum of the
/// warm-up steps' times on their slowest rank.
[[nodiscard]] double warm_up_seconds(const results::PointData& point);

/// Returns the energy and mean power of the point's computing devices over its measuring loop. The
/// power of a GPU comes from its energy counter or else from its samples of power; that of a CPU
/// package or memory from its counter. Absent if some device's power is not known, or for a loop of
/// less than a second, since GPUs update their counters only about ten times a second.
[[nodiscard]] Energy energy_of(const results::RunData& run, const results::PointData& point);

/// Returns warnings about clocks that changed, reasons for lowered clocks, and errors that devices
/// counted during the point, by the rules of docs/device-state.md. Warnings about CPU clocks need
/// samples of busy_time. The last warnings name, for each reason, the first series that cannot be
/// used and the number of the others.
[[nodiscard]] std::vector<std::string> device_warnings(const results::PointData& point);

}  // namespace isoscale::analysis::devices
