// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "executor/executor.hpp"

namespace isoscale::executor {

/// Does what another session does: to be derived from by who adds to some of it.
class ForwardingSession : public Session {
 public:
  explicit ForwardingSession(std::unique_ptr<Session> inner) : inner_(std::move(inner)) {}

  using Session::play;
  PlayTime play(const Play& what) override { return inner_->play(what); }
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return inner_->spans(); }
  [[nodiscard]] std::optional<units::Seconds> estimate(program::Section section) override {
    return inner_->estimate(section);
  }
  [[nodiscard]] std::string arithmetic(program::Section section) const override {
    return inner_->arithmetic(section);
  }
  void read(const program::Slice& slice, std::span<std::byte> into) override {
    inner_->read(slice, into);
  }
  void write(const program::Slice& slice, std::span<const std::byte> from) override {
    inner_->write(slice, from);
  }
  [[nodiscard]] const SessionFacts& facts() const override { return inner_->facts(); }
  void abandon() noexcept override { inner_->abandon(); }
  [[nodiscard]] std::optional<Whereabouts> whereabouts() const override {
    return inner_->whereabouts();
  }
  void interrupt() noexcept override { inner_->interrupt(); }

 private:
  std::unique_ptr<Session> inner_;
};

}  // namespace isoscale::executor
