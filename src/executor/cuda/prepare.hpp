// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/gemm_choice.hpp"
#include "executor/cuda/memory.hpp"
#include "executor/cuda/prepare_ops.hpp"
#include "executor/cuda/symmetric_transport.hpp"

namespace isoscale::executor::cuda {

inline constexpr std::uint32_t no_event = ~std::uint32_t{0};

struct PreparedOp {
  Call call;
  program::StreamId stream = 0;
  std::uint32_t done = no_event;  ///< event after the op, for which ops on other streams wait
  std::uint32_t wait_begin = 0;   ///< into PreparedSection::waits
  std::uint8_t wait_count = 0;
  bool is_marked = false;  ///< its start is marked in the stream
};

/// The NVTX range in which an op is issued.
struct OpRange {
  program::Phase phase = program::Phase::setup;
  std::string name{};  ///< "gemm layer 3 mb 0"
};

/// A section, ready to be issued in program order.
struct PreparedSection {
  std::vector<PreparedOp> ops;
  std::vector<std::uint32_t> waits;        ///< numbers of events that ops wait for
  std::vector<program::StreamId> streams;  ///< used streams, ascending
  std::uint32_t event_count = 0;
  std::vector<OpRange> ranges;  ///< by op, for profilers; empty: none
  bool can_be_captured = true;  ///< false with advice or copies of pageable memory
  bool has_marks = false;
};

/// The memory that calls need in addition to the program's buffers.
struct Scratch {
  std::vector<DeviceMemory> workspaces;  ///< of GEMMs and fills of host memory, by
                                         ///< stream: two ops of a stream never overlap
  std::vector<units::Bytes> workspace_bytes;
  DeviceMemory largest;  ///< one word for each cast that finds a largest value
  DeviceMemory barrier;  ///< the word that the barrier collective reduces
  DeviceMemory indices;  ///< tables of the Rows ops of all sections, one after the other
  units::Bytes bytes;    ///< all of it

  /// Drops all memory without freeing it: kernels may still use it, and freeing would wait for
  /// them.
  void abandon() noexcept;
};

/// Returns the GEMMs of a program, for the choice of algorithms. Throws base::Error, which names
/// the op, for a GEMM that cuBLASLt cannot do.
[[nodiscard]] std::vector<GemmProblem> gemm_problems(const Resolver& resolver,
                                                     const program::RankProgram& program);

/// One rank's program with everything looked up.
struct PreparedProgram {
  std::vector<PreparedSection> sections;  ///< by program::Section
  Scratch scratch;
  std::vector<std::unique_ptr<GemmPlan>> plans;  ///< referenced by the GEMMs
  std::vector<GemmChoice> choices;               ///< the algorithms in use, by shape

  [[nodiscard]] const PreparedSection& section(program::Section which) const {
    return sections.at(static_cast<std::size_t>(which));
  }
};
/// Prepares all sections of a program. Throws base::Error, which names the op, if the device cannot
/// play it. `choices` must have a choice for every GEMM.
[[nodiscard]] PreparedProgram prepare(const Resolver& resolver, const program::RankProgram& program,
                                      const Communicators& communicators, const Puts& puts,
                                      const GemmChoices& choices);

/// Returns the first calls on each communicator. All ranks of a communicator make corresponding
/// ones, since their ops correspond.
[[nodiscard]] FirstCalls first_calls(const PreparedProgram& program);

}  // namespace isoscale::executor::cuda
