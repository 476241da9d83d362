// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "executor/host/host.hpp"

namespace isoscale::runner {

/// What an ObservedExecutor has been asked to do on this rank.
struct Observed {
  int prepared = 0;
  int steps = 0;
};

class ObservedSession final : public executor::Session {
 public:
  ObservedSession(std::unique_ptr<executor::Session> inner, Observed& observed)
      : inner_(std::move(inner)), observed_(observed) {}

  using Session::play;
  executor::PlayTime play(const executor::Play& what) override {
    if (what.section == program::Section::step) ++observed_.steps;
    return inner_->play(what);
  }
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return inner_->spans(); }
  void read(const program::Slice& slice, std::span<std::byte> into) override {
    inner_->read(slice, into);
  }
  void write(const program::Slice& slice, std::span<const std::byte> from) override {
    inner_->write(slice, from);
  }
  [[nodiscard]] const executor::SessionFacts& facts() const override { return inner_->facts(); }
  void abandon() noexcept override { inner_->abandon(); }

 private:
  std::unique_ptr<executor::Session> inner_;
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
