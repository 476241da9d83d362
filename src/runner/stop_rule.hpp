// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

namespace isoscale::runner {

/// Relative half-width of the median's interval at a confidence; absent while there is none.
using HalfWidth = std::function<std::optional<double>(std::span<const double>, double confidence)>;
/// Of an interval that is looked at once.
inline constexpr double plain_confidence = 0.95;
/// Confidence that each of so many looks must have, from one to the next of which the number of
/// samples grows so much.
using NominalConfidence = std::function<double(int planned, double growth)>;

/// Looks at samples at numbers that grow geometrically, and says whether they suffice. The number
/// of looks is planned once, so that the interval at each can be as much wider as looking so often
/// demands. Ranks that hold the same samples decide alike.
class StopRule {
 public:
  static constexpr double growth = 1.5;  ///< of the samples from one look to the next

  struct Goal {
    double precision = 0.01;  ///< relative half-width to stop at
    std::size_t first = 6;    ///< samples at the first look
    double most = 6;          ///< samples that the time is expected to hold
  };

  /// Without `nominal`, every look has 95%.
  StopRule(const Goal& goal, HalfWidth half_width, const NominalConfidence& nominal);

  /// Samples that the next look waits for.
  [[nodiscard]] std::size_t next_look() const { return next_look_; }
  /// Whether there are samples enough for the next look, and looks left but the last one: that is
  /// kept for when time is up.
  [[nodiscard]] bool is_due(std::size_t samples) const {
    return samples >= next_look_ && made_ + 1 < planned_;
  }
  /// Looks; whether the samples suffice.
  bool suffices(std::span<const double> samples);

  [[nodiscard]] int planned() const { return planned_; }
  [[nodiscard]] int made() const { return made_; }
  /// As the last look found it.
  [[nodiscard]] std::optional<double> half_width() const { return reached_; }

 private:
  double precision_;
  HalfWidth half_width_;
  int planned_;
  double confidence_;
  std::size_t next_look_;
  int made_ = 0;
  std::optional<double> reached_;
};

}  // namespace isoscale::runner
