// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "executor/cuda/device_barrier.hpp"
#include "executor/cuda/gate.hpp"
#include "executor/cuda/player.hpp"
#include "executor/cuda/puts.hpp"
#include "executor/cuda/registration.hpp"
#include "executor/executor.hpp"
#include "executor/plugin.hpp"

namespace isoscale::executor::cuda {

/// What a session is made from.
struct SessionParts {
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Communicators> communicators;
  KeptCommunicators* keeper = nullptr;  ///< gets them when the session ends; null: nobody
  Registrations registrations;
  Puts puts;
  DeviceBarrier barrier;
  PreparedProgram program;
  StreamPlayer player;
  config::Graph graph = config::Graph::off;
  config::Nvtx nvtx = config::Nvtx::off;
  SessionFacts facts;
};

class CudaSession final : public Session {
 public:
  explicit CudaSession(SessionParts parts);
  ~CudaSession() override;
  CudaSession(const CudaSession&) = delete;
  CudaSession& operator=(const CudaSession&) = delete;

  /// The time is that between two events of the GPU. The first happens when this is called, since
  /// the streams are free; where launches are hidden, when the first ops have been launched behind
  /// it and all ranks that the section has collectives with have got there.
  using Session::play;
  PlayTime play(const Play& what) override;
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return spans_; }
  /// By ncclGroupSimulateEnd, each op as a group of its own.
  [[nodiscard]] std::optional<units::Seconds> estimate(program::Section section) override;
  [[nodiscard]] std::string arithmetic(program::Section section) const override;
  void read(const program::Slice& slice, std::span<std::byte> into) override;
  void write(const program::Slice& slice, std::span<const std::byte> from) override;
  [[nodiscard]] const SessionFacts& facts() const override { return parts_.facts; }
  void abandon() noexcept override { failed_ = true; }
  /// As the streams have marked it.
  [[nodiscard]] std::optional<Whereabouts> whereabouts() const override;

 private:
  [[nodiscard]] PlayTime play_checked(const Play& what);
  /// Issues all passes; `graph` replays one, null: op by op.
  void issue(const Play& what, const PreparedSection& section, cudaGraphExec_t graph, Gate* gate);
  /// The captured graph of a section, made when it is first asked for.
  [[nodiscard]] cudaGraphExec_t graph_of(program::Section section, Trace trace);
  /// Waits until `event` has happened, and looks at the communicators meanwhile. Throws NcclError
  /// or CudaError when it never will, TimedOut when it has not after `timeout` (0 = for ever).
  void wait_for(cudaEvent_t event, units::Seconds timeout) const;
  [[nodiscard]] std::byte* address(const program::Slice& slice, std::size_t bytes) const;

  SessionParts parts_;
  Event begin_ = make_event(Timing::on), end_ = make_event(Timing::on);
  /// Of steps; made at the second play or later.
  std::map<std::pair<program::Section, Trace>, ExecutableGraph> graphs_;
  std::optional<Gate> gate_;  ///< made when a play first asks for it
  std::set<program::Section> played_;
  std::uint32_t steps_ = 0;  ///< plays of the step so far
  std::vector<timeline::Span> spans_;
  bool failed_ = false;
  // Where it is, for other threads:
  std::atomic<program::Section> section_{program::Section::step};
  std::atomic<std::uint64_t> passes_{0};  ///< before the play under way
  std::atomic<bool> playing_{false};
};

}  // namespace isoscale::executor::cuda
