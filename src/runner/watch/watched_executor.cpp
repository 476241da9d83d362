// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/watch/watched_executor.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "executor/executor.hpp"
#include "program/outline.hpp"
#include "runner/watch/calls_made.hpp"

namespace isoscale::runner {
namespace {

using executor::Session;

std::vector<program::Outline> outlines_of(const program::ProgramSet& set, int rank) {
  std::vector<program::Outline> result;
  const program::RankProgram& program = set.of(rank);
  for (std::size_t section = 0; section < program.sections().size(); ++section) {
    result.push_back(program::outline(program, static_cast<program::Section>(section), set.mesh));
  }
  return result;
}

class WatchedSession final : public executor::ForwardingSession, public Watched {
 public:
  WatchedSession(std::unique_ptr<Session> inner, Board& board, const program::ProgramSet& set,
                 int rank, std::vector<int> world_ranks)
      : ForwardingSession(std::move(inner)),
        board_(board),
        mesh_(set.mesh),
        rank_(rank),
        world_ranks_(std::move(world_ranks)),
        outlines_(outlines_of(set, rank)) {
    board_.enter(this);
  }
  ~WatchedSession() override { board_.leave(this); }
  WatchedSession(const WatchedSession&) = delete;
  WatchedSession& operator=(const WatchedSession&) = delete;

  using Session::play;
  executor::PlayTime play(const executor::Play& what) override {
    section_.store(what.section, std::memory_order_relaxed);
    plays_.fetch_add(1, std::memory_order_relaxed);
    playing_.store(true, std::memory_order_relaxed);
    const executor::PlayTime time = ForwardingSession::play(what);
    playing_.store(false, std::memory_order_relaxed);
    return time;
  }

  [[nodiscard]] executor::Whereabouts where() const override {
    if (const auto at = whereabouts()) return *at;
    return {.section = section_.load(std::memory_order_relaxed),
            .plays = plays_.load(std::memory_order_relaxed),
            .playing = playing_.load(std::memory_order_relaxed)};
  }
  void describe(RankState& state) const override {
    const executor::Whereabouts at = where();
    const auto section = static_cast<std::size_t>(at.section);
    if (section >= outlines_.size()) return;
    describe_calls(
        {.outline = outlines_[section], .mesh = mesh_, .rank = rank_, .world_ranks = world_ranks_},
        at, state);
  }
  void interrupt() noexcept override { ForwardingSession::interrupt(); }

 private:
  Board& board_;
  mesh::Shape mesh_;
  int rank_;  ///< of the point
  // Of executors that do not say where they are:
  std::atomic<program::Section> section_{program::Section::step};
  std::atomic<std::uint64_t> plays_{0};
  std::atomic<bool> playing_{false};
  std::vector<int> world_ranks_;
  std::vector<program::Outline> outlines_;  ///< by section
};

}  // namespace

std::unique_ptr<Session> WatchedExecutor::prepare(const program::ProgramSet& set,
                                                  const comm::Communicator& point,
                                                  const executor::SessionOptions& options) {
  std::unique_ptr<Session> inner = inner_.prepare(set, point, options);
  return std::make_unique<WatchedSession>(std::move(inner), board_, set, point.rank(),
                                          point.ranks_in(world_));
}

}  // namespace isoscale::runner
