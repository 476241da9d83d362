// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/stream_threads.hpp"

#include <fmt/format.h>

#include <system_error>

#include "base/error.hpp"

namespace isoscale::executor::host {

StreamThreads::StreamThreads(std::size_t lanes, Waiting waiting)
    : between_lanes_(waiting == Waiting::asleep ? Waiting::asleep : Waiting::ladder),
      progress_(lanes),
      workers_(lanes) {
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    workers_[lane].player.waiting = lane == 0 ? waiting : between_lanes_;
    workers_[lane].player.stopped = &stopped_;
  }
  try {
    for (std::size_t lane = 1; lane < lanes; ++lane) {
      workers_[lane].thread = std::thread{[this, lane] { serve(lane); }};
    }
  } catch (const std::system_error& error) {
    close();
    throw base::Error(
        fmt::format("cannot start a thread for each of {} streams ({}): raise the "
                    "limit on processes of this user or container",
                    lanes, error.what()));
  }
}

StreamThreads::~StreamThreads() { close(); }

void StreamThreads::close() {
  closing_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
}

void StreamThreads::begin(const PreparedSection& section, Spans spans) {
  section_ = &section;
  spans_ = spans;
  for (Progress& progress : progress_) progress.done.store(0, std::memory_order_relaxed);
  for (Worker& worker : workers_) {
    worker.player.begun.store(Whereabouts::no_op, std::memory_order_relaxed);
  }
  if (section.lanes.size() <= 1) return;
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
}

void StreamThreads::end() {
  const std::uint32_t epoch = epoch_.load(std::memory_order_relaxed);  // no other thread changes it
  // Even after a failure, wait for all threads: none of them may use the section once the play has
  // ended. If the section has one lane only, begin() did not increase the epoch, so the threads
  // that slept on count as finished.
  for (std::size_t lane = 1; lane < workers_.size(); ++lane) {
    climb(between_lanes_, nullptr,
          [&] { return workers_[lane].finished.load(std::memory_order_acquire) == epoch; });
  }
  if (!stopped_.load(std::memory_order_acquire)) return;
  for (const Worker& worker : workers_) {
    if (worker.failure) std::rethrow_exception(worker.failure);
  }
}

std::vector<std::uint32_t> StreamThreads::begun() const {
  std::vector<std::uint32_t> result;
  for (const Worker& worker : workers_) {
    result.push_back(worker.player.begun.load(std::memory_order_relaxed));
  }
  return result;
}

void StreamThreads::serve(std::size_t lane) {
  for (std::uint32_t epoch = 0; wait_for_play(epoch);) {
    ++epoch;
    play_lane(lane);
    workers_[lane].finished.store(epoch, std::memory_order_release);
  }
}

/// Waits for the next play; returns false if there will be none. The thread polls for a while
/// before it sleeps, since the next play usually follows immediately.
bool StreamThreads::wait_for_play(std::uint32_t epoch) {
  constexpr std::chrono::milliseconds patience{1};
  const auto tired = std::chrono::steady_clock::now() + patience;
  while (epoch_.load(std::memory_order_acquire) == epoch) {
    if (std::chrono::steady_clock::now() > tired) {
      epoch_.wait(epoch, std::memory_order_acquire);
    } else {
      std::this_thread::yield();
    }
  }
  return !closing_.load(std::memory_order_relaxed);
}

/// Plays the ops of one lane (stream). An error is stored for end() to throw, and stops the other
/// lanes.
void StreamThreads::play_lane(std::size_t lane) {
  Worker& worker = workers_[lane];
  worker.failure = nullptr;
  if (lane >= section_->lanes.size()) return;
  std::uint32_t done = 0;
  try {
    for (const PreparedOp& op : section_->lanes[lane]) {
      if (op.wait_count > 0) wait_for(section_->waits_of(op));
      play_op(op, worker.player, spans_);
      ++done;
      if (op.awaited) progress_[lane].done.store(done, std::memory_order_release);
    }
  } catch (const Stopped&) {
    // This lane was stopped because another lane failed; that lane's error is the one to report.
  } catch (...) {
    worker.failure = std::current_exception();
    stopped_.store(true, std::memory_order_release);
  }
}

void StreamThreads::wait_for(std::span<const program::Wait> waits) {
  for (const program::Wait& wait : waits) {
    const std::atomic<std::uint32_t>& done = progress_[wait.stream].done;
    climb(between_lanes_, &stopped_,
          [&] { return done.load(std::memory_order_acquire) >= wait.count; });
  }
}

}  // namespace isoscale::executor::host
