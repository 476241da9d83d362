// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "executor/executor.hpp"

namespace isoscale::executor::host {

/// How a thread waits for its messages: at once and inside MPI's blocking collectives, which is
/// quickest when the thread has a core of its own, or by looking again and again, less and less
/// often, which lets other threads of the core run; or asleep but for a look now and then, which
/// takes next to nothing of a core that more ranks share than it could serve otherwise.
enum class Waiting : std::uint8_t { blocking, ladder, asleep };

/// How long to sleep between two looks after having waited for so long: asleep, the longer the
/// wait, the longer the sleep, so that what is measured is late by a small part of it, and many
/// ranks on a core leave it to what there is to do.
[[nodiscard]] inline std::chrono::nanoseconds nap_after(Waiting waiting,
                                                        std::chrono::nanoseconds waited) {
  constexpr std::chrono::microseconds ladder_nap{20}, shortest{100}, longest{1000};
  constexpr int share = 16;
  if (waiting != Waiting::asleep) return ladder_nap;
  return std::clamp<std::chrono::nanoseconds>(waited / share, shortest, longest);
}

/// Returns once done() is true. Looks a few times at once, then gives the core away between looks,
/// and, on the ladder, sleeps between them after about a millisecond: short sleeps from the start
/// would cost more than most waits last. Throws Stopped once `stopped` is set.
template <class Done>
void climb(Waiting waiting, const std::atomic<bool>& stopped, const Done& done) {
  using Clock = std::chrono::steady_clock;
  constexpr int eager_looks = 32;
  constexpr int yields_between_clock_readings = 16;
  constexpr std::chrono::milliseconds patience{1};
  for (int look = 0; look < eager_looks; ++look) {
    if (done()) return;
  }
  const auto begin = Clock::now();
  bool napping = waiting == Waiting::asleep;
  for (int look = 1; !done(); ++look) {
    if (stopped.load(std::memory_order_acquire)) throw Stopped("stopped while it waited");
    if (napping) {
      std::this_thread::sleep_for(nap_after(waiting, Clock::now() - begin));
      continue;
    }
    std::this_thread::yield();
    if (waiting == Waiting::ladder && look % yields_between_clock_readings == 0) {
      napping = Clock::now() - begin > patience;
    }
  }
}

}  // namespace isoscale::executor::host
