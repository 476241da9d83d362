// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "results/run_data.hpp"

/// Which sampled series anything can be concluded from: files may be damaged, or written by others.
namespace isoscale::analysis {

/// A level is what it is at a time; of a counter, only the difference of two samples means
/// anything.
enum class QuantityKind : std::uint8_t { level, counter, bits };

struct Quantity {
  std::string_view unit;  ///< "" = not known: any
  QuantityKind kind = QuantityKind::level;
};
/// What docs/device-state.md lists; of others, names that end in _bytes or _errors are counters.
[[nodiscard]] Quantity quantity_of(std::string_view name);

/// Why a series is useless, as the end of a sentence: "its times do not rise"; "" when it is not.
/// It has samples, finite values and times, times that rise by a nanosecond at least and the unit
/// of its quantity; counters do not fall; of quantities that are known, no level is below 0, no
/// utilisation above 1, and nothing is busy for longer than it was watched.
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
/// Of the point's series those without a flaw, in order; of several about the same quantity of one
/// rank's device the first.
[[nodiscard]] UsableSeries usable_series(const results::PointData& point);

}  // namespace isoscale::analysis
