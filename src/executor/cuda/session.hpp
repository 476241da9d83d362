// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "executor/cuda/player.hpp"
#include "executor/executor.hpp"
#include "executor/plugin.hpp"

namespace isoscale::executor::cuda {

/// What a session is made from.
struct SessionParts {
  std::unique_ptr<Communicators> communicators;
  std::unique_ptr<Memory> memory;
  PreparedProgram program;
  StreamPlayer player;
  config::Graph graph = config::Graph::off;
  SessionFacts facts;
};

class CudaSession final : public Session {
 public:
  explicit CudaSession(SessionParts parts);
  ~CudaSession() override;
  CudaSession(const CudaSession&) = delete;
  CudaSession& operator=(const CudaSession&) = delete;

  /// The time is that between two events of the GPU, the first of which happens when this is
  /// called: the streams are free.
  PlayTime play(program::Section section, Trace trace) override;
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return spans_; }
  void read(const program::Slice& slice, std::span<std::byte> into) override;
  void write(const program::Slice& slice, std::span<const std::byte> from) override;
  [[nodiscard]] const SessionFacts& facts() const override { return parts_.facts; }

 private:
  [[nodiscard]] PlayTime play_checked(program::Section section, Trace trace);
  void issue(program::Section section, Trace trace);
  /// Waits until `event` has happened, and looks at the communicators meanwhile. Throws NcclError
  /// or CudaError when it never will.
  void wait_for(cudaEvent_t event) const;
  [[nodiscard]] std::byte* address(const program::Slice& slice, std::size_t bytes) const;

  SessionParts parts_;
  Event begin_ = make_event(Timing::on), end_ = make_event(Timing::on);
  std::array<ExecutableGraph, 2>
      graphs_;  ///< of the step, by Trace; made at the second play or later
  std::vector<timeline::Span> spans_;
  bool step_was_played_ = false;
  bool failed_ = false;
};

}  // namespace isoscale::executor::cuda
