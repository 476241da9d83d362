// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/log.hpp"
#include "comm/world.hpp"

namespace isoscale::runner {
namespace {

std::string clock_text(units::Seconds time) {
  const auto whole = static_cast<int>(time.value());
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(Style style, int points, int to_measure,
                   std::optional<units::Nanoseconds> deadline)
    : style_(style),
      points_(points),
      to_measure_(to_measure),
      begin_(comm::now()),
      deadline_(deadline) {}

Progress::Style Progress::detect() {
  return ::isatty(STDERR_FILENO) == 1 ? Style::live : Style::lines;
}

void Progress::begin_point(int index, std::string_view what) {
  index_ = index;
  what_ = what;
  if (board_ != nullptr) {
    board_->at_point(fmt::format("point {} of {}, {}", index + 1, points_, what));
    board_->doing("beginning");
  }
  if (style_ == Style::live) show("");
}

void Progress::doing(std::string_view what) {
  if (board_ != nullptr) board_->doing(what);
  if (style_ == Style::live) show(what);
  if (style_ != Style::lines) return;
  constexpr double pause = 10;  // seconds between two lines of a log
  const double now = units::to_seconds(comm::now() - begin_).value();
  if (now - last_line_ < pause) return;
  last_line_ = now;
  base::warn(
      fmt::format("point {} of {}: {}: {}{}", index_ + 1, points_, what_, what, time_text()));
}

void Progress::end_point(std::string_view outcome) {
  if (style_ == Style::silent) return;
  const int number = index_ + 1;
  ++done_;
  const std::string line =
      fmt::format("point {} of {}: {}: {}{}", number, points_, what_, outcome, time_text());
  if (style_ == Style::lines) {
    last_line_ = units::to_seconds(comm::now() - begin_).value();
    base::warn(line);
  } else {
    show(outcome);
  }
}

void Progress::finish() {
  if (style_ == Style::live) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(std::string_view state) {
  const std::string line = fmt::format("\r\x1b[Kpoint {} of {}: {}{}{}{}", index_ + 1, points_,
                                       what_, state.empty() ? "" : ": ", state, time_text());
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

std::string Progress::time_text() const {
  const units::Nanoseconds now = comm::now();
  const units::Seconds elapsed = units::to_seconds(now - begin_);
  std::optional<units::Seconds> until_deadline;
  if (deadline_) until_deadline = units::to_seconds(*deadline_ - now);
  std::string text = fmt::format("  [{} elapsed", clock_text(elapsed));
  if (const auto left = expected_left(elapsed, done_, to_measure_, until_deadline)) {
    text += fmt::format(", about {} left", clock_text(*left));
  }
  return text + "]";
}

std::optional<units::Seconds> expected_left(units::Seconds elapsed, int done, int points,
                                            std::optional<units::Seconds> until_deadline) {
  if (done <= 0) return std::nullopt;
  const units::Seconds left = (static_cast<double>(points - done) / done) * elapsed;
  if (!until_deadline) return left;
  return std::clamp(left, units::Seconds{0}, std::max(*until_deadline, units::Seconds{0}));
}

}  // namespace isoscale::runner
