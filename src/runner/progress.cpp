// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/log.hpp"
#include "comm/communicator.hpp"

namespace isoscale::runner {
namespace {

std::string clock_text(units::Seconds time) {
  const auto whole = static_cast<int>(time.value());
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(Style style, int points, std::map<int, units::Seconds> planned,
                   std::optional<units::Nanoseconds> deadline)
    : style_(style),
      points_(points),
      planned_(std::move(planned)),
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
  done_ = units::to_seconds(comm::now() - begin_);
  if (const auto planned = planned_.find(index_); planned != planned_.end()) {
    planned_done_ += planned->second;
    planned_.erase(planned);
  }
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
  units::Seconds planned_left{0};
  for (const auto& [index, planned] : planned_) planned_left += planned;
  if (const auto left =
          expected_left(elapsed, done_, planned_done_, planned_left, until_deadline)) {
    text += fmt::format(", about {} left", clock_text(*left));
  }
  return text + "]";
}

std::optional<units::Seconds> expected_left(units::Seconds elapsed, units::Seconds done,
                                            units::Seconds planned_done,
                                            units::Seconds planned_left,
                                            std::optional<units::Seconds> until_deadline) {
  const units::Seconds none{0};
  if (planned_done + planned_left <= none) return std::nullopt;
  const double pace = planned_done > none ? done / planned_done : 1;
  const units::Seconds left = std::max(pace * planned_left - (elapsed - done), none);
  return until_deadline ? std::min(left, std::max(*until_deadline, none)) : left;
}

}  // namespace isoscale::runner
