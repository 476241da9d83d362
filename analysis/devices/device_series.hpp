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

#include "results/run_data.hpp"

/// Sampled series of devices: which of them anything can be concluded from (files may be damaged,
/// or written by others), and why the clocks of a GPU were held down.
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

/// The first usable series of a rank's device; null where there is none.
/// Not owned.
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

}  // namespace isoscale::analysis
