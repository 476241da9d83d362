// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "executor/cuda/errors_and_handles.hpp"
#include "program/outline.hpp"
#include "units/quantity.hpp"

/// Words of pinned host memory that streams write and wait for: gates, which hold a stream back,
/// and marks, which say how far streams are.
namespace isoscale::executor::cuda {

// Two calls of the driver, which the runtime does not have. They return the driver's code: 0 for
// success, and not supported (801) where this driver does not know the call.

/// When all before it on the stream is done, `to` holds `value`. Says nothing about other memory.
[[nodiscard]] int write_in_stream(cudaStream_t stream, const std::uint32_t* to,
                                  std::uint32_t value);
/// Makes the stream wait until `at` holds `value` or has passed it, modulo 2^32.
[[nodiscard]] int wait_in_stream(cudaStream_t stream, const std::uint32_t* at, std::uint32_t value);

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

// Marks: streams write into host memory which op they begin, so that another thread can tell what a
// GPU is at that does not come to an end.

/// Chooses the ops of a section that say that they begin, when that costs `cost` of their stream's
/// time: so far apart that all marks take at most 0.5% of the shortest time that the section can
/// take on any GPU. The first op of every stream is marked, where that is affordable; else no op
/// is, and nothing is returned.
[[nodiscard]] std::vector<bool> choose_marks(const program::Outline& section, units::Seconds cost);

/// The words that the streams of one rank write. Read from any thread.
class Marks {
 public:
  Marks() = default;  ///< writes nothing
  /// For so many streams, of which `main` is one and free. Writes nothing where the driver cannot,
  /// which it says once.
  Marks(std::size_t streams, cudaStream_t main);

  [[nodiscard]] explicit operator bool() const { return words_ != nullptr; }

  /// On `main`: a pass over a section begins; `number` counts them.
  void pass(std::uint64_t number, cudaStream_t main) const;
  /// On `main`, before `streams` begin: none of their ops has begun.
  void clear(std::span<const program::StreamId> streams, cudaStream_t main) const;
  void begins(std::uint32_t op, program::StreamId stream, cudaStream_t handle) const;

  /// The low bits of the number of the pass that was begun last.
  [[nodiscard]] std::uint32_t last_pass() const;
  /// By stream: the op that was begun last, or Whereabouts::no_op.
  [[nodiscard]] std::vector<std::uint32_t> begun() const;

  /// Forgets the words without freeing, as streams may still write them.
  void abandon() noexcept { static_cast<void>(memory_.release()); }

 private:
  void write(std::size_t word, std::uint32_t value, cudaStream_t stream) const;

  PinnedMemory memory_;
  std::uint32_t* words_ = nullptr;  ///< the pass, then an op + 1 for each stream
  std::size_t streams_ = 0;
};

}  // namespace isoscale::executor::cuda
