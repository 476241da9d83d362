// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
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

  Progress(Style style, int points) : Progress(style, points, {}) {}
  /// `points` of the plan. `planned`: how long those are expected to take that this launch
  /// measures, by index. It ends by the `deadline` if there is one.
  Progress(Style style, int points, std::map<int, units::Seconds> planned,
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
  std::map<int, units::Seconds> planned_;  ///< of the points that have not ended
  units::Seconds planned_done_{};          ///< of those that have
  units::Seconds done_{};                  ///< how long these took
  int index_ = 0;                          ///< of the point under way
  std::string what_;
  double last_line_ = 0;  ///< seconds after the beginning
  units::Nanoseconds begin_;
  std::optional<units::Nanoseconds> deadline_;
};

/// How long a run goes on that has lasted `elapsed`. The points that ended took `done`, where
/// `planned_done` was expected; the others are expected to take `planned_left` at the same pace.
/// The deadline is kept. Absent without a plan.
[[nodiscard]] std::optional<units::Seconds> expected_left(
    units::Seconds elapsed, units::Seconds done, units::Seconds planned_done,
    units::Seconds planned_left, std::optional<units::Seconds> until_deadline);

}  // namespace isoscale::runner
