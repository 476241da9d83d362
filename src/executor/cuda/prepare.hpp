// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/gemm.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/memory.hpp"
#include "executor/cuda/symmetric_transport.hpp"

/// Prepares programs for execution: finds the addresses, communicators and algorithms of ops.
namespace isoscale::executor::cuda {

/// Starts kernels or copies on a stream; throws CudaError if it cannot.
using Launch = std::function<void(cudaStream_t)>;

/// An op that is ready to start. GEMMs and communication have their own types, since their prepared
/// calls are inspected later; every other op is a Launch.
using Call = std::variant<Launch, GemmCall, CollectiveCall, ExchangeCall, PutCall>;
/// Starts an op on a stream.
void launch(const Call& call, cudaStream_t stream);

inline constexpr std::uint32_t no_event = ~std::uint32_t{0};

struct PreparedOp {
  Call call;
  program::StreamId stream = 0;
  std::uint32_t done = no_event;  ///< index of the event recorded after the op, for ops of other
                                  ///< streams that wait for it; no_event: none waits
  std::uint32_t wait_begin = 0;   ///< index in PreparedSection::waits of the first of the
                                  ///< wait_count events for which the op waits
  std::uint8_t wait_count = 0;
  bool is_marked = false;  ///< the stream tells the host when the op starts (see Marks)
};

/// The NVTX range in which an op is issued.
struct OpRange {
  program::Phase phase = program::Phase::setup;
  std::string name{};  ///< such as "gemm layer 3 mb 0" (mb: microbatch)
};

/// A section (setup or one step) of a program, ready to be issued in program order.
struct PreparedSection {
  std::vector<PreparedOp> ops;
  std::vector<std::uint32_t> waits;        ///< indices of events that ops wait for
  std::vector<program::StreamId> streams;  ///< used streams, ascending
  std::vector<OpRange> ranges;             ///< NVTX ranges by op; empty: none
  /// False if any rank has an Advise op or an op on pageable memory: the host takes part in such an
  /// op, so it can neither be captured in a CUDA graph nor wait behind a Gate.
  bool can_be_captured = true;
  bool has_marks = false;
};

/// The memory that calls need in addition to the program's buffers.
struct Scratch {
  std::vector<DeviceMemory> workspaces;  ///< by stream; used by GEMMs and fills of host
                                         ///< memory, which never overlap on a stream
  std::vector<units::Bytes> workspace_bytes;
  DeviceMemory largest;  ///< one word for each cast with CastScale::amax: the largest magnitude
  DeviceMemory barrier;  ///< the word that the barrier collective reduces
  DeviceMemory indices;  ///< Rows::from of all Rows ops, concatenated
  units::Bytes bytes;    ///< size of all scratch memory

  /// Drops all memory without freeing it: kernels may still use it, and freeing would wait for
  /// them.
  void abandon() noexcept;
};

/// Allocates the memory that the calls of a program need. `choices` must have a choice for every
/// GEMM.
[[nodiscard]] Scratch take_scratch(const Resolver& resolver, const program::RankProgram& program,
                                   const GemmChoices& choices);

/// Returns the size in bytes of the staging memory of a fill of host memory; 0 for other fills.
[[nodiscard]] std::uint64_t host_fill_bytes(const Resolver& resolver, const program::Fill& op);

/// Returns the GEMMs of a program, for the choice of algorithms. Throws base::Error, which names
/// the op, for a GEMM that cuBLASLt cannot do.
[[nodiscard]] std::vector<GemmProblem> gemm_problems(const Resolver& resolver,
                                                     const program::RankProgram& program);

/// One rank's program, ready to be issued.
struct PreparedProgram {
  std::vector<PreparedSection> sections;  ///< indexed by program::Section
  Scratch scratch;
  std::map<std::string, GemmPlan> plans;  ///< by GemmChoice::shape; GEMM calls point to them
  std::vector<GemmChoice> choices;        ///< the algorithms in use, one for each shape

  [[nodiscard]] const PreparedSection& section(program::Section which) const {
    return sections.at(static_cast<std::size_t>(which));
  }
};
/// Prepares all sections of a program. Throws base::Error, which names the op, if the device cannot
/// run it. `choices` must have a choice for every GEMM.
[[nodiscard]] PreparedProgram prepare(const Resolver& resolver, const program::RankProgram& program,
                                      const Communicators& communicators, const Puts& puts,
                                      const GemmChoices& choices);

/// Returns the first calls on each communicator that the program uses. All ranks of a communicator
/// make matching first calls, since their ops match. They include no messages if the options have
/// connects_in_play.
[[nodiscard]] std::map<ncclComm_t, FirstCalls> first_calls(const PreparedProgram& program,
                                                           const SessionOptions& options);

}  // namespace isoscale::executor::cuda
