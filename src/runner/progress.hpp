// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runner/watch/board.hpp"
#include "units/quantity.hpp"

namespace isoscale::runner {

/// Where a run is, on standard error: one live line on a terminal, plain lines otherwise.
class Progress {
 public:
  enum class Style : std::uint8_t { live, lines, silent };

  Progress(Style style, int points) : Progress(style, points, points) {}
  /// `points` of the plan, of which `to_measure` are measured by this launch, until `deadline` if
  /// there is one.
  Progress(Style style, int points, int to_measure,
           std::optional<units::Nanoseconds> deadline = std::nullopt);
  /// Live when standard error is a terminal, else lines.
  [[nodiscard]] static Style detect();

  /// Tells the board from now on, whether or not it speaks.
  void tell(Board* board) { board_ = board; }
  [[nodiscard]] Board* board() const { return board_; }

  void begin_point(int index, std::string_view what);
  /// What the point is doing; on a log every ten seconds at most.
  void doing(std::string_view what);
  void end_point(std::string_view outcome);
  void finish();

 private:
  void show(std::string_view state);
  [[nodiscard]] std::string time_text() const;

  Style style_;
  Board* board_ = nullptr;
  int points_;
  int to_measure_;
  int index_ = 0;  ///< of the point under way
  int done_ = 0;   ///< points that have ended
  std::string what_;
  double last_line_ = 0;  ///< seconds after the beginning
  units::Nanoseconds begin_;
  std::optional<units::Nanoseconds> deadline_;
};

/// What is expected to be left after `done` of `points` took `elapsed`: as long for each as for
/// those, but no longer than until the deadline. Absent before any is done.
[[nodiscard]] std::optional<units::Seconds> expected_left(
    units::Seconds elapsed, int done, int points, std::optional<units::Seconds> until_deadline);

}  // namespace isoscale::runner
