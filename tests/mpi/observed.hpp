// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "executor/executor.hpp"
#include "executor/host/host.hpp"

namespace isoscale::runner {

/// The counts tell what an ObservedExecutor has been asked to do on this rank.
struct Observed {
  int prepared = 0;
  int steps = 0;
};

class ObservedSession final : public executor::ForwardingSession {
 public:
  ObservedSession(std::unique_ptr<executor::Session> inner, Observed& observed)
      : ForwardingSession(std::move(inner)), observed_(observed) {}

  using Session::play;
  executor::PlayTime play(const executor::Play& what) override {
    if (what.section == program::Section::step) ++observed_.steps;
    return ForwardingSession::play(what);
  }

 private:
  Observed& observed_;
};

/// The host executor, counting, and out of memory when told to be.
class ObservedExecutor final : public executor::Executor {
 public:
  [[nodiscard]] const executor::Description& describe() const override {
    return inner_->describe();
  }
  using Executor::prepare;
  [[nodiscard]] std::unique_ptr<executor::Session> prepare(
      const program::ProgramSet& set, const comm::Communicator& point,
      const executor::SessionOptions& options) override {
    // Collective first, as the interface asks: a rank that throws leaves nobody waiting.
    auto session = inner_->prepare(set, point, options);
    ++observed.prepared;
    if (fail_at == observed.prepared) throw base::Error("no memory is left, says the test");
    return std::make_unique<ObservedSession>(std::move(session), observed);
  }

  Observed observed;
  std::optional<int> fail_at;  ///< the how-manieth prepare fails on this rank

 private:
  std::unique_ptr<executor::Executor> inner_ =
      executor::make_host_executor({.streams = executor::HostStreams::folded});
};

}  // namespace isoscale::runner
