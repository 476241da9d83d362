// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/log.hpp"
#include "comm/world.hpp"

namespace isoscale::runner {
namespace {

std::string clock_text(double seconds) {
  const auto whole = static_cast<int>(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(Style style, int points, int to_measure)
    : style_(style), points_(points), to_measure_(to_measure), begin_(comm::now()) {}

Progress::Style Progress::detect() {
  return ::isatty(STDERR_FILENO) == 1 ? Style::live : Style::lines;
}

void Progress::begin_point(int index, std::string_view what) {
  index_ = index;
  what_ = what;
  if (style_ == Style::live) show("");
}

void Progress::doing(std::string_view what) {
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
  const double elapsed = units::to_seconds(comm::now() - begin_).value();
  std::string text = fmt::format("  [{} elapsed", clock_text(elapsed));
  // Left: as long a point as those before, once there are some.
  if (done_ > 0) {
    text += fmt::format(", about {} left", clock_text(elapsed / done_ * (to_measure_ - done_)));
  }
  return text + "]";
}

}  // namespace isoscale::runner
