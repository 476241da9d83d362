// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

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
  /// The number of ranks on this rank's node. The cores of the node are divided by it if ranks are
  /// not bound, and the CPU quota of the node's ranks always is.
  int ranks_on_node = 1;
  /// The MPI_THREAD_* level that MPI granted. Below MULTIPLE, one thread plays all streams.
  int thread_level = MPI_THREAD_MULTIPLE;
  /// The most elements in one MPI call; tests lower it.
  std::uint64_t elements_per_call = max_elements_per_call;
};

/// Makes the executor that uses BLAS and MPI on this rank's cores. It is part of every build and is
/// the reference for other executors. It computes in f64 and f32, and adds integers. It fills,
/// checksums, copies and communicates elements of all types, and casts to and from f16 and bf16,
/// since data may be communicated in these types although no other op computes in them.
[[nodiscard]] std::unique_ptr<Executor> make_host_executor(const HostOptions& options);

}  // namespace isoscale::executor

namespace isoscale::executor::host {

/// Returns for each stream the size of the staging memory that the host needs in addition to a
/// program's arenas, for copies of data that MPI cannot handle in place. The calls of a stream run
/// one after the other and share one piece of memory, which is as large as the largest need of any
/// of them. `elements_per_call` is the most elements in one MPI call.
[[nodiscard]] std::array<units::Bytes, program::max_streams> staging_bytes(
    const program::RankProgram& program, const mesh::Shape& mesh, std::uint64_t elements_per_call);

}  // namespace isoscale::executor::host
