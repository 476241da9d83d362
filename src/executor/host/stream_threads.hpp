// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <thread>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "executor/host/prepare.hpp"
#include "program/program.hpp"
#include "timeline/timeline.hpp"
#include "units/quantity.hpp"

/// Threads that execute a section, one for each lane (stream), and the ways in which they wait for
/// messages.
namespace isoscale::executor::host {

/// Tells how a thread waits for its messages. blocking: it waits for collectives inside MPI's
/// blocking calls, which is fastest if it has its own core, and polls for other messages. ladder:
/// it polls, less often the longer the wait lasts, so that other threads can use the core. asleep:
/// it sleeps between polls, so that many ranks can share one core.
enum class Waiting : std::uint8_t { blocking, ladder, asleep };

/// Waits until done() is true. It first calls done() 32 times without a pause. After that,
/// Waiting::asleep sleeps between calls for 1/16 of the time waited so far, but at least 100 us and
/// at most 1 ms: a long wait then ends late by only a small part of its length, and waiting ranks
/// leave the core to ranks that have work. The other ways yield the core between calls. With
/// Waiting::ladder the thread sleeps 20 us between calls once the wait has lasted about a
/// millisecond; sleeping earlier would cost more than most waits last. Throws Stopped when
/// `*stopped` becomes true; `stopped` may be null.
template <class Done>
void climb(Waiting waiting, const std::atomic<bool>* stopped, const Done& done) {
  using Clock = std::chrono::steady_clock;
  constexpr int eager_looks = 32;
  constexpr int yields_between_clock_readings = 16;
  constexpr std::chrono::milliseconds patience{1};
  constexpr std::chrono::microseconds ladder_nap{20}, shortest_nap{100}, longest_nap{1000};
  for (int look = 0; look < eager_looks; ++look) {
    if (done()) return;
  }
  const auto begin = Clock::now();
  bool napping = waiting == Waiting::asleep;
  for (int look = 1; !done(); ++look) {
    if (stopped != nullptr && stopped->load(std::memory_order_acquire)) {
      throw Stopped("stopped while it waited");
    }
    if (napping) {
      const std::chrono::nanoseconds share = (Clock::now() - begin) / 16;
      std::this_thread::sleep_for(waiting == Waiting::asleep ? std::clamp<std::chrono::nanoseconds>(
                                                                   share, shortest_nap, longest_nap)
                                                             : ladder_nap);
      continue;
    }
    std::this_thread::yield();
    if (waiting == Waiting::ladder && look % yields_between_clock_readings == 0) {
      napping = Clock::now() - begin > patience;
    }
  }
}

/// The state of one thread that executes ops.
struct Player {
  Waiting waiting = Waiting::blocking;
  const std::atomic<bool>* stopped = nullptr;  ///< true once a thread of the session has
                                               ///< failed; null: no wait is cut short
  /// The op that began last; other threads read it.
  std::atomic<std::uint32_t> begun{Whereabouts::no_op};
  units::Nanoseconds patience{};      ///< time limit of one exchange; 0 = none
  std::vector<MPI_Request> requests;  ///< requests of the current exchange
  std::vector<MPI_Status> statuses;
};

/// The spans that a traced play records. Element i is the span of op i of the section. Empty if the
/// play is not traced.
using Spans = std::span<timeline::Span>;

/// Executes an op. In a traced play, the clock is read both before and after the op. The end of the
/// previous op cannot serve as this op's start, since the span would then include time in which the
/// thread did something else between the two.
inline void play_op(const PreparedOp& op, Player& player, Spans spans) {
  player.begun.store(op.index, std::memory_order_relaxed);
  if (spans.empty()) return op.call(player);
  const units::Nanoseconds start = comm::now();
  op.call(player);
  spans[op.index] = {.op = op.index, .start = start, .end = comm::now()};
}

/// Plays sections with one thread for each lane (stream). Lane 0 is played by the calling thread,
/// every other lane by a thread that exists as long as this object. All threads see what the caller
/// wrote to memory before begin(), and the caller sees what they wrote when end() has returned.
class StreamThreads {
 public:
  /// `waiting` says how lane 0 waits for messages. If it is Waiting::asleep, the other lanes wait
  /// for messages in this way, too, and all lanes wait for each other in this way. Otherwise they
  /// use Waiting::ladder for both.
  StreamThreads(std::size_t lanes, Waiting waiting);
  ~StreamThreads();
  StreamThreads(const StreamThreads&) = delete;
  StreamThreads& operator=(const StreamThreads&) = delete;

  /// begin() starts a play of the section on all lanes except lane 0, which the caller then plays
  /// by play_lane(0). The other threads sleep on if the section has only lane 0. end() returns when
  /// all lanes have played all their ops. If a lane fails, the others stop as soon as they wait
  /// outside MPI's blocking calls; end() then throws the error of the failed lane with the lowest
  /// number.
  void begin(const PreparedSection& section, Spans spans);
  void play_lane(std::size_t lane);
  void end();

  /// Limits how long later plays wait for one exchange; 0 = no limit.
  void set_patience(units::Nanoseconds patience) {
    for (Worker& worker : workers_) worker.player.patience = patience;
  }

  /// Returns for each lane the op of the play that began last; Whereabouts::no_op if none has
  /// begun. Any thread may call this.
  [[nodiscard]] std::vector<std::uint32_t> begun() const;

 private:
  /// `done` is the number of ops of a lane that have ended. It is updated only after ops for which
  /// other lanes wait. Other threads poll it, so it has cache lines of its own.
  struct alignas(128) Progress {
    std::atomic<std::uint32_t> done{0};
  };
  struct alignas(128) Worker {
    Player player;
    std::exception_ptr failure;  ///< error that ended the lane's last play; null if there was none
    /// Number of the last play that this lane has finished; plays are counted in epoch_.
    std::atomic<std::uint32_t> finished{0};
    std::thread thread;
  };

  void close();
  void serve(std::size_t lane);
  [[nodiscard]] bool wait_for_play(std::uint32_t epoch);
  void wait_for(std::span<const program::Wait> waits);

  Waiting between_lanes_;           ///< how lanes wait for each other
  std::vector<Progress> progress_;  ///< indexed by lane
  std::vector<Worker> workers_;     ///< indexed by lane; lane 0 has no thread
  std::atomic<bool> stopped_{false};
  std::atomic<bool> closing_{false};

  // These members describe the current play. begin() writes them before it increases `epoch_`, and
  // threads read them only after they have seen the new value of `epoch_`.
  const PreparedSection* section_ = nullptr;
  Spans spans_;
  std::atomic<std::uint32_t> epoch_{0};
};

}  // namespace isoscale::executor::host
