// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "units/quantity.hpp"

namespace isoscale::runner {

/// The first sample after the last change of level that is larger than this, relative; 0 = none.
using LastChange = std::function<std::size_t(std::span<const double>, double smallest)>;

/// When steps have settled. At least 3 are played and a tenth of the time, up to half a second;
/// then at least 16 must have followed the last change of level, and half as many as came before
/// it. It gives up when 3 tenths of the time have gone, and does not spend more than one on the
/// first 16. Ranks that hold the same times decide alike.
class WarmUp {
 public:
  /// Without `last_change`, nobody looks for changes.
  WarmUp(units::Seconds max_time, double smallest, LastChange last_change)
      : max_time_(max_time), smallest_(smallest), last_change_(std::move(last_change)) {}

  /// Why it is over, in words; absent: another step is to be played. `times` are those of all steps
  /// so far, of which there is one, and `elapsed` is how long they took.
  [[nodiscard]] std::optional<std::string> over(std::span<const double> times,
                                                units::Seconds elapsed);

 private:
  units::Seconds max_time_;
  double smallest_;
  LastChange last_change_;
  std::size_t next_check_ = 0;  ///< steps; not after each of them
};

}  // namespace isoscale::runner
