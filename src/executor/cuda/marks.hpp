// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <vector>

#include "executor/cuda/handles.hpp"
#include "program/outline.hpp"
#include "units/quantity.hpp"

/// Marks: streams write into host memory which op they begin, so that another thread can tell what
/// a GPU is at that does not come to an end.
namespace isoscale::executor::cuda {

/// Which ops of a section say that they begin, when that costs `cost` of their stream's time: so
/// far apart that all marks take at most 0.5% of the shortest time that the section can take on
/// any GPU. The first op of every stream is marked, where that is affordable; else no op is, and
/// nothing is returned.
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
