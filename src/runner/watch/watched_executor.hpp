// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "runner/watch/board.hpp"

namespace isoscale::runner {

/// Another executor, each session of which a board knows while it lives: where it is, and what
/// calls it has made with whom.
class WatchedExecutor final : public executor::Executor {
 public:
  /// Ranks are named as `world` numbers them. All must outlive this and its sessions.
  WatchedExecutor(executor::Executor& inner, Board& board, const comm::Communicator& world)
      : inner_(inner), board_(board), world_(world) {}

  [[nodiscard]] const executor::Description& describe() const override { return inner_.describe(); }
  using Executor::prepare;
  [[nodiscard]] std::unique_ptr<executor::Session> prepare(
      const program::ProgramSet& set, const comm::Communicator& point,
      const executor::SessionOptions& options) override;

 private:
  executor::Executor& inner_;
  Board& board_;
  const comm::Communicator& world_;
};

}  // namespace isoscale::runner
