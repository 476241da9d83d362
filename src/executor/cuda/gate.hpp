// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "executor/cuda/handles.hpp"

namespace isoscale::executor::cuda {

/// Holds a stream back until the host has launched the first ops behind it, so that the GPU does
/// not wait for launches in what is timed: the stream waits for a word of pinned host memory.
///
/// A launch may itself wait for the stream, where the queue of launches is full or code has to be
/// loaded. The gate therefore opens by itself after a while, by a thread of its own, and says so.
class Gate {
 public:
  static constexpr std::uint32_t most_ops = 64;  ///< far less than a queue of launches holds
  static constexpr std::chrono::milliseconds patience{100};

  /// `main` is free. Where the driver cannot make a stream wait the gate does nothing, which it
  /// says once.
  explicit Gate(cudaStream_t main);
  ~Gate();  ///< opens it
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// `stream` waits here until the gate is opened.
  void close(cudaStream_t stream);
  /// One more op was launched behind it: the last that it takes opens it.
  void launched();
  void open() noexcept;
  /// True if it opened by itself since it was closed. Asked once it is open.
  [[nodiscard]] bool was_late() const;

  /// Opens it, and forgets the word without freeing, as a stream may still wait for it.
  void abandon() noexcept;

 private:
  enum class State : std::uint8_t { open, closed, late };
  void let_pass() noexcept;
  void watch(const std::stop_token& stop);

  PinnedMemory memory_;
  std::uint32_t* word_ = nullptr;
  std::uint32_t times_ = 0;  ///< that it was closed; what the word holds when it is open
  std::uint32_t launched_ = 0;
  State state_ = State::open;
  bool is_watched_ = false;  ///< the thread looks at it again by the deadline
  std::chrono::steady_clock::time_point deadline_;
  mutable std::mutex mutex_;  ///< of times_, state_, is_watched_ and deadline_
  std::condition_variable_any changed_;
  std::jthread watcher_;  ///< the last member: it uses the others
};

}  // namespace isoscale::executor::cuda
