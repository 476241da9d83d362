// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

/// The highest rate that a system sustains, found by trying some; pure.
namespace isoscale::workloads::serve {

/// Doubles the rate until one is too high (halves it until one is not), then tries the geometric
/// mean of the two until they are within 5% of each other.
class RateSearch {
 public:
  explicit RateSearch(double first) : next_(first) {}

  /// The rate to try next; absent when the search is over.
  [[nodiscard]] std::optional<double> next() const { return next_; }
  enum class Outcome : unsigned char { sustained, saturated };
  /// What came of next().
  void tell(Outcome outcome);
  /// The highest rate that was sustained; absent while none was.
  [[nodiscard]] std::optional<double> sustained() const { return low_; }

  static constexpr double resolution = 1.05;
  static constexpr int most_trials = 16;

 private:
  std::optional<double> next_;
  std::optional<double> low_, high_;
  int trials_ = 0;
};

}  // namespace isoscale::workloads::serve
