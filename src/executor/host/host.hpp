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
#include "units/quantity.hpp"

namespace isoscale::executor {

/// The assignment of streams to threads on the host.
enum class HostStreams : std::uint8_t {
  automatic,  ///< folded with fewer than two cores for this rank, else one thread per further
              ///< stream
  threads,
  folded,
};

/// The treatment of types that a CPU has no arithmetic for. The host casts to and from f16 and
/// bf16, and reduces them, in any case: communication may use them where nothing is computed in
/// them.
enum class NarrowTypes : std::uint8_t {
  refused,
  emulated,  ///< widened, computed in f32, rounded back: slow, for tests of other executors
};

/// MPI's counts are int: larger slices are sent in parts.
inline constexpr std::uint64_t max_elements_per_call = std::numeric_limits<int>::max();

struct HostOptions {
  int blas_threads = 1;
  HostStreams streams = HostStreams::automatic;
  /// The number of ranks on this rank's node; memory and cores are divided by it if the ranks are
  /// not bound.
  int ranks_on_node = 1;
  /// The MPI_THREAD_* level that the library gave; below MULTIPLE streams are folded.
  int thread_level = MPI_THREAD_MULTIPLE;
  /// The most elements in one MPI call; tests lower it.
  std::uint64_t elements_per_call = max_elements_per_call;
  NarrowTypes narrow = NarrowTypes::refused;
};

/// Makes the executor with BLAS and MPI on this rank's cores. It is always built and is the
/// reference for every other executor.
[[nodiscard]] std::unique_ptr<Executor> make_host_executor(const HostOptions& options);

}  // namespace isoscale::executor

namespace isoscale::executor::host {

/// Returns the bytes by stream, over all sections of the program, that the host needs beside a
/// program's arenas, because it copies data aside where MPI cannot work in place. The calls of one
/// stream follow each other and share one piece of memory, as large as the largest of them needs.
/// `elements_per_call` is the most elements in one MPI call.
[[nodiscard]] std::array<units::Bytes, program::max_streams> staging_bytes(
    const program::RankProgram& program, const mesh::Shape& mesh, std::uint64_t elements_per_call);

}  // namespace isoscale::executor::host
