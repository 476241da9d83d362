// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/activity_and_progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/warn.hpp"
#include "program/outline.hpp"

namespace isoscale::runner::watch {

namespace {

std::vector<program::Outline> outlines_of(const program::ProgramSet& set, int rank) {
  std::vector<program::Outline> result;
  const program::RankProgram& program = set.of(rank);
  for (std::size_t section = 0; section < program.sections().size(); ++section) {
    result.push_back(program::outline(program, static_cast<program::Section>(section), set.mesh));
  }
  return result;
}

std::string clock_text(units::Seconds time) {
  const auto whole = static_cast<int>(time.value());
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

executor::Whereabouts WatchedSession::where() const {
  return session->whereabouts().value_or(executor::Whereabouts{});
}

void WatchedSession::describe(RankState& state) const {
  const executor::Whereabouts at = where();
  const auto section = static_cast<std::size_t>(at.section);
  if (section >= outlines.size()) return;
  describe_calls(
      {.outline = outlines[section], .mesh = mesh, .rank = rank, .world_ranks = world_ranks}, at,
      state);
}

void Activity::doing(std::string_view what) {
  const std::scoped_lock lock{mutex_};
  doing_ = what;
  ++changes_;
}

void Activity::at_point(std::string_view what) {
  const std::scoped_lock lock{mutex_};
  point_ = what;
  doing_ = "beginning";
  ++changes_;
}

void Activity::set_watched() {
  const std::scoped_lock lock{mutex_};
  is_watched_ = true;
}

bool Activity::has_failed() const {
  const std::scoped_lock lock{mutex_};
  return !failure_.empty();
}

void Activity::fail(std::string_view why) {
  {
    const std::scoped_lock lock{mutex_};
    if (!is_watched_) return;
    failure_ = why;
  }
  while (true) std::this_thread::sleep_for(std::chrono::hours{1});
}

Activity::Idle::Idle(Activity* activity) : activity_(activity) {
  if (activity_ == nullptr) return;
  const std::scoped_lock lock{activity_->mutex_};
  ++activity_->idle_count_;
}

Activity::Idle::~Idle() {
  if (activity_ == nullptr) return;
  const std::scoped_lock lock{activity_->mutex_};
  --activity_->idle_count_;
  ++activity_->changes_;
}

void Activity::enter(WatchedSession session) {
  const std::scoped_lock lock{mutex_};
  sessions_.push_back(std::move(session));
  ++changes_;
}

void Activity::leave(const executor::Session* session) {
  const std::scoped_lock lock{mutex_};
  std::erase_if(sessions_, [&](const WatchedSession& one) { return one.session == session; });
  ++changes_;
}

Activity::Motion Activity::motion() const {
  const std::scoped_lock lock{mutex_};
  Motion motion{.changes = changes_,
                .calls = calls_->begun.load(std::memory_order_relaxed) +
                         calls_->ended.load(std::memory_order_relaxed) +
                         calls_->others.load(std::memory_order_relaxed),
                .rests = idle_count_ > 0};
  for (const WatchedSession& session : sessions_) motion.sessions.push_back(session.where());
  return motion;
}

RankState Activity::state() const {
  const std::scoped_lock lock{mutex_};
  RankState state{.rank = rank_,
                  .doing = point_.empty() ? doing_ : fmt::format("{}: {}", point_, doing_),
                  .rests = idle_count_ > 0,
                  .in_collective = calls_->begun.load(std::memory_order_relaxed) !=
                                   calls_->ended.load(std::memory_order_relaxed),
                  .failure = failure_};
  for (const WatchedSession& session : sessions_) session.describe(state);
  return state;
}

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
  if (activity_ != nullptr) {
    activity_->at_point(fmt::format("point {} of {}, {}", index + 1, points_, what));
  }
  if (style_ == Style::live) show("");
}

void Progress::doing(std::string_view what) {
  if (activity_ != nullptr) activity_->doing(what);
  if (style_ == Style::live) show(what);
  if (style_ != Style::lines) return;
  // Least number of seconds between two lines if the output is no terminal.
  constexpr double pause = 10;
  const double now = units::to_seconds(comm::now() - begin_).value();
  if (now - last_line_ < pause) return;
  last_line_ = now;
  base::warn(line(what));
}

void Progress::end_point(std::string_view outcome) {
  if (style_ == Style::silent) return;
  done_ = units::to_seconds(comm::now() - begin_);
  if (const auto planned = planned_.find(index_); planned != planned_.end()) {
    planned_done_ += planned->second;
    planned_.erase(planned);
  }
  if (style_ == Style::live) return show(outcome);
  last_line_ = units::to_seconds(comm::now() - begin_).value();
  base::warn(line(outcome));
}

void Progress::finish() {
  if (style_ == Style::live) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(std::string_view state) {
  std::fputs(("\r\x1b[K" + line(state)).c_str(), stderr);
  std::fflush(stderr);
}

std::string Progress::line(std::string_view state) const {
  return fmt::format("point {} of {}: {}{}{}{}", index_ + 1, points_, what_,
                     state.empty() ? "" : ": ", state, time_text());
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

executor::SessionPtr WatchedExecutor::prepare(const program::ProgramSet& set,
                                              const comm::Communicator& point,
                                              const executor::SessionOptions& options) {
  executor::SessionPtr session;
  try {
    session = inner_.prepare(set, point, options);
  } catch (const executor::NeverReady& error) {
    activity_.fail(error.what());
    throw;
  }
  activity_.enter({.session = session.get(),
                   .mesh = set.mesh,
                   .rank = point.rank(),
                   .world_ranks = point.ranks_in(world_),
                   .outlines = outlines_of(set, point.rank())});
  session.get_deleter().before = [&activity = activity_, ended = session.get()] {
    activity.leave(ended);
  };
  return session;
}

}  // namespace isoscale::runner::watch
