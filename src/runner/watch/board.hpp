// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "runner/watch/state.hpp"

namespace isoscale::runner {

/// A session that says where it is.
class Watched {
 public:
  [[nodiscard]] virtual executor::Whereabouts where() const = 0;
  /// Adds what its streams are at, and how far its communicators are.
  virtual void describe(RankState& state) const = 0;
  virtual void interrupt() noexcept = 0;

 protected:
  ~Watched() = default;
};

/// What this rank does, told by the thread that does it and read by the one that watches.
class Board {
 public:
  explicit Board(int rank) : rank_(rank), calls_(std::make_shared<comm::CallCount>()) {}

  void doing(std::string_view what);
  void at_point(std::string_view what);  ///< stands before what is done
  void failed(std::string_view why);

  /// While one lives, the rank has nothing to do but to wait for others, or for a time to come.
  /// Null: nobody is told.
  class Rest {
   public:
    explicit Rest(Board* board);
    ~Rest();
    Rest(const Rest&) = delete;
    Rest& operator=(const Rest&) = delete;

   private:
    Board* board_;
    std::uint64_t life_ = 0;
  };

  /// What it was at has been given up: sessions and rests of then count no more.
  void start_anew();

  void enter(Watched* session);
  void leave(Watched* session);
  /// Ends what its sessions wait for, as far as that can be left.
  void interrupt() noexcept;
  /// What collective calls of the runner are counted by.
  [[nodiscard]] std::shared_ptr<comm::CallCount> calls() const;

  /// Equal to an earlier one when nothing has moved since.
  struct Motion {
    std::uint64_t changes = 0, calls = 0;
    std::vector<executor::Whereabouts> sessions{};
    bool rests = false;
    bool operator==(const Motion&) const = default;
  };
  [[nodiscard]] Motion motion() const;
  [[nodiscard]] RankState state() const;

 private:
  int rank_;
  mutable std::mutex mutex_;  ///< of what follows
  std::shared_ptr<comm::CallCount> calls_;
  std::string point_, doing_ = "starting", failure_;
  std::uint64_t changes_ = 0;
  std::uint64_t life_ = 0;  ///< how often it was started anew
  int rests_ = 0;
  std::vector<Watched*> sessions_;
};

}  // namespace isoscale::runner
