// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <thread>
#include <vector>

#include "executor/host/calls.hpp"
#include "executor/host/prepare.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

namespace isoscale::executor::host {

/// Where a play leaves its spans; empty when it is not traced. Each op writes the one of its index.
using Spans = std::span<timeline::Span>;

/// Plays a section of one lane on the calling thread, in program order.
void play_inline(const PreparedSection& section, Player& player, Spans spans);

/// Plays sections with a thread per lane: lane 0 on the calling thread, the others on threads that
/// live as long as this object. What the caller writes before play() is seen by all threads, and
/// what they write by the caller after it.
class StreamThreads {
 public:
  /// `waiting` is how lane 0 waits for messages; the other lanes climb the ladder.
  StreamThreads(std::size_t lanes, Waiting waiting);
  ~StreamThreads();
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  /// Returns when all lanes have drained. When a lane fails the others stop as soon as they wait
  /// for something outside of MPI's blocking calls; then the error of the first to fail is thrown
  /// here.
  void play(const PreparedSection& section, Spans spans);

  /// How long the plays to come wait for one exchange; 0 = for ever.
  void set_patience(units::Nanoseconds patience) {
    for (Worker& worker : workers_) worker.player.patience = patience;
  }

  /// From any thread, by lane: the op that was begun last.
  [[nodiscard]] std::vector<std::uint32_t> begun() const;
  /// From any thread: ends the play under way, which throws Stopped, as soon as its lanes wait for
  /// something outside of MPI's blocking calls.
  void interrupt() noexcept { stopped_.store(true, std::memory_order_release); }

 private:
  /// Ops done of a lane; alone on its cache lines, since other threads look at it all the time.
  struct alignas(128) Progress {
    std::atomic<std::uint32_t> done{0};
  };
  struct alignas(128) Worker {
    Player player;
    std::exception_ptr failure;              ///< of the last play
    std::atomic<std::uint32_t> finished{0};  ///< epoch of the last play that it has drained
    std::thread thread;
  };

  void close();
  void serve(std::size_t lane);
  [[nodiscard]] bool wait_for_play(std::uint32_t epoch);
  void play_lane_safely(std::size_t lane);
  void play_lane(std::size_t lane);
  void wait_for(std::span<const program::Wait> waits);
  void rethrow_failure();

  Waiting between_lanes_;           ///< how threads wait for each other
  std::vector<Progress> progress_;  ///< by lane
  std::vector<Worker> workers_;     ///< by lane; that of lane 0 has no thread
  std::atomic<bool> stopped_{false};
  std::atomic<bool> closing_{false};

  // What is played: written before `epoch_` is raised, read after it was seen.
  const PreparedSection* section_ = nullptr;
  Spans spans_;
  std::atomic<std::uint32_t> epoch_{0};
};

}  // namespace isoscale::executor::host
