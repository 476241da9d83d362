// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/board.hpp"

#include <fmt/format.h>

namespace isoscale::runner {

void Board::doing(std::string_view what) {
  const std::scoped_lock lock{mutex_};
  doing_ = what;
  ++changes_;
}

void Board::at_point(std::string_view what) {
  const std::scoped_lock lock{mutex_};
  point_ = what;
  ++changes_;
}

void Board::failed(std::string_view why) {
  const std::scoped_lock lock{mutex_};
  failure_ = why;
  ++changes_;
}

Board::Rest::Rest(Board* board) : board_(board) {
  if (board_ == nullptr) return;
  const std::scoped_lock lock{board_->mutex_};
  life_ = board_->life_;
  ++board_->rests_;
}

Board::Rest::~Rest() {
  if (board_ == nullptr) return;
  const std::scoped_lock lock{board_->mutex_};
  if (life_ != board_->life_) return;
  --board_->rests_;
  ++board_->changes_;
}

void Board::start_anew() {
  const std::scoped_lock lock{mutex_};
  ++life_;
  rests_ = 0;
  sessions_.clear();
  failure_.clear();
  calls_ = std::make_shared<comm::CallCount>();
  ++changes_;
}

std::shared_ptr<comm::CallCount> Board::calls() const {
  const std::scoped_lock lock{mutex_};
  return calls_;
}

void Board::enter(Watched* session) {
  const std::scoped_lock lock{mutex_};
  sessions_.push_back(session);
  ++changes_;
}

void Board::leave(Watched* session) {
  const std::scoped_lock lock{mutex_};
  std::erase(sessions_, session);
  ++changes_;
}

void Board::interrupt() noexcept {
  const std::scoped_lock lock{mutex_};
  for (Watched* session : sessions_) session->interrupt();
}

Board::Motion Board::motion() const {
  const std::scoped_lock lock{mutex_};
  Motion motion{.changes = changes_,
                .calls = calls_->begun.load(std::memory_order_relaxed) +
                         calls_->ended.load(std::memory_order_relaxed) +
                         calls_->others.load(std::memory_order_relaxed),
                .rests = rests_ > 0};
  for (Watched* session : sessions_) motion.sessions.push_back(session->where());
  return motion;
}

RankState Board::state() const {
  const std::scoped_lock lock{mutex_};
  RankState state{.rank = rank_,
                  .doing = point_.empty() ? doing_ : fmt::format("{}: {}", point_, doing_),
                  .rests = rests_ > 0,
                  .in_collective = calls_->begun.load(std::memory_order_relaxed) !=
                                   calls_->ended.load(std::memory_order_relaxed),
                  .failure = failure_};
  for (Watched* session : sessions_) session->describe(state);
  return state;
}

}  // namespace isoscale::runner
