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

/// Words of pinned host memory that streams write or wait for: a gate delays a stream, and marks
/// show the progress of streams.
namespace isoscale::executor::cuda {

/// Writes `value` to `to` once all earlier work on the stream is done. Earlier writes to other
/// memory need not be visible then. The CUDA runtime has no such function, so the driver's is used.
/// Returns the driver's code: 0 for success, 801 (CUDA_ERROR_NOT_SUPPORTED) if it has none either.
[[nodiscard]] int write_in_stream(cudaStream_t stream, const std::uint32_t* to,
                                  std::uint32_t value);

/// Holds a stream back until the host has launched the first ops behind the gate, so that the timed
/// part contains no waits for the launches of these ops. The stream waits for a word of pinned host
/// memory.
///
/// A launch may itself wait for the stream, if the queue of launches is full or code has to be
/// loaded. A thread of the gate therefore opens it after `patience`; was_late() then returns true.
class Gate {
 public:
  /// The gate opens after this many launches, which is far below the length of CUDA's launch queue.
  static constexpr std::uint32_t most_ops = 64;
  /// A graph of more ops is launched without the gate: its launch might fill the queue, and takes
  /// little time beside its ops.
  static constexpr std::size_t most_graph_ops = 256;
  static constexpr std::chrono::milliseconds patience{100};

  /// `main` must be idle. If the driver cannot make a stream wait, the gate does nothing, after one
  /// warning in the process.
  explicit Gate(cudaStream_t main);
  ~Gate();  ///< opens the gate
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Makes `stream` wait here until the gate is opened.
  void close(cudaStream_t stream);
  /// Counts an op launched behind the gate, and opens the gate when the count reaches most_ops.
  void launched();
  void open() noexcept;
  /// True if the gate's thread opened it after the last close(). The gate must be open.
  [[nodiscard]] bool was_late() const;

  /// Opens the gate and drops the word without freeing it, as a stream may still wait for it.
  void abandon() noexcept;

 private:
  enum class State : std::uint8_t { open, closed, late };
  void let_pass() noexcept;
  void watch(const std::stop_token& stop);

  PinnedMemory memory_;
  std::uint32_t* word_ = nullptr;
  std::uint32_t times_ = 0;  ///< number of close() calls; the word's value when the gate is open
  std::uint32_t launched_ = 0;
  State state_ = State::open;
  bool is_watched_ = false;  ///< the thread will check again at the deadline
  std::chrono::steady_clock::time_point deadline_;
  mutable std::mutex mutex_;  ///< guards times_, state_, is_watched_ and deadline_
  std::condition_variable_any changed_;
  std::jthread watcher_;  ///< declared last, since its thread uses the others
};

// With marks, streams write to host memory which op they begin, so that another thread can tell at
// which op a GPU hangs.

/// Chooses the ops of a section that mark their start, and returns true or false for each op.
/// `cost` is the time that a mark takes on its stream. Marks are so far apart that those of a
/// stream take at most 0.5% of the least time that its ops need on any GPU. The first op of every
/// stream is marked. If even these marks would take too much time, no op is marked and the result
/// is empty.
[[nodiscard]] std::vector<bool> choose_marks(const program::Outline& section, units::Seconds cost);

/// Words in host memory that the streams of one rank write. Any thread may read them.
class Marks {
 public:
  Marks() = default;  ///< never writes anything
  /// Makes the words for this many streams; `main` is one of them and must be idle. If the driver
  /// cannot write words in streams, nothing is ever written, after one warning in the process.
  Marks(std::size_t streams, cudaStream_t main);

  [[nodiscard]] explicit operator bool() const { return words_ != nullptr; }

  /// Makes `main` write that a pass (one run of the section) with this number begins.
  void pass(std::uint64_t number, cudaStream_t main) const;
  /// Makes `main` write, for each of `streams`, that none of its ops has begun. Must be called
  /// before the streams begin.
  void clear(std::span<const program::StreamId> streams, cudaStream_t main) const;
  /// Makes `handle`, the CUDA stream of `stream`, write that `op` begins.
  void begins(std::uint32_t op, program::StreamId stream, cudaStream_t handle) const;

  /// Returns the lowest 32 bits of the number of the pass that began last.
  [[nodiscard]] std::uint32_t last_pass() const;
  /// Returns for each stream the op that began last, or Whereabouts::no_op.
  [[nodiscard]] std::vector<std::uint32_t> begun() const;

  /// Drops the words without freeing them, as streams may still write them.
  void abandon() noexcept { static_cast<void>(memory_.release()); }

 private:
  void write(std::size_t word, std::uint32_t value, cudaStream_t stream) const;

  PinnedMemory memory_;
  std::uint32_t* words_ = nullptr;  ///< the pass number; then by stream 1 + last op, 0: none
  std::size_t streams_ = 0;
};

}  // namespace isoscale::executor::cuda
