// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>

#include "executor/executor.hpp"
#include "mesh/mesh.hpp"
#include "program/program.hpp"
#include "settings/run_config.hpp"
#include "units/quantity.hpp"

namespace isoscale::executor {

using settings::HostStreams;

/// The most elements in one MPI call, since MPI counts are int; larger slices are sent in parts.
inline constexpr std::uint64_t max_elements_per_call = std::numeric_limits<int>::max();

struct HostOptions {
  int blas_threads = 1;
  HostStreams streams = HostStreams::automatic;
  /// The number of ranks on this rank's node. They share the node's CPU quota equally, and also its
  /// cores if they are not bound to cores.
  int ranks_on_node = 1;
  bool threads_may_talk = true;  ///< see comm::threads_may_talk(); if false, one thread runs all
                                 ///< streams
  /// The most elements in one MPI call; tests lower it.
  std::uint64_t elements_per_call = max_elements_per_call;
};

/// Makes the executor that uses BLAS and MPI on this rank's cores. Every build with MPI has it, and
/// it is the reference for other executors. It computes in f64 and f32, and adds integers. It
/// fills, copies, sends and takes checksums of elements of all types, and reduces all types but
/// fp8 in collectives. It casts to and from f16 and bf16, but computes in neither of them.
[[nodiscard]] std::unique_ptr<Executor> make_host_executor(const HostOptions& options);

}  // namespace isoscale::executor

namespace isoscale::executor::host {

/// Returns for each stream the size of its staging memory. This is memory beyond that of the
/// program's buffers, for copies of data that MPI cannot handle in place. The calls of a stream run
/// one after the other and use the same staging memory, so its size is the largest need of any
/// call. `elements_per_call` is the most elements in one MPI call.
[[nodiscard]] std::array<units::Bytes, program::max_streams> staging_bytes(
    const program::RankProgram& program, const mesh::Shape& mesh, std::uint64_t elements_per_call);

}  // namespace isoscale::executor::host
