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

/// How the host executor puts streams on threads.
enum class HostStreams : std::uint8_t {
  automatic,  ///< folded when this rank has fewer than two cores, else a thread per further stream
  threads,
  folded,
};

/// Types that a CPU has no arithmetic for. The host casts to and from f16 and bf16, and reduces
/// them, in any case: communication may be in them where nothing else is.
enum class NarrowTypes : std::uint8_t {
  refused,
  emulated,  ///< widened, computed in f32, rounded back: slow, for tests of other executors
};

/// Counts of MPI are int: larger slices go in chunks.
inline constexpr std::uint64_t max_elements_per_call = std::numeric_limits<int>::max();

struct HostOptions {
  int blas_threads = 1;
  HostStreams streams = HostStreams::automatic;
  /// Ranks that share this rank's node; memory and cores are divided by it when they are not bound.
  int ranks_on_node = 1;
  /// MPI_THREAD_* the library gave; below MULTIPLE streams are folded.
  int thread_level = MPI_THREAD_MULTIPLE;
  /// Most elements that one MPI call is given; lowered by tests.
  std::uint64_t elements_per_call = max_elements_per_call;
  NarrowTypes narrow = NarrowTypes::refused;
};

/// BLAS and MPI on this rank's cores: always built, the reference of every other executor.
[[nodiscard]] std::unique_ptr<Executor> make_host_executor(const HostOptions& options);

}  // namespace isoscale::executor

namespace isoscale::executor::host {

/// Bytes by stream, over all sections of the program, that the host needs beside a program's
/// arenas: it copies data aside where MPI cannot work in place. The calls of one stream follow each
/// other and share one piece, as large as the largest of them needs. `elements_per_call`: the most
/// that one MPI call is given.
[[nodiscard]] std::array<units::Bytes, program::max_streams> staging_bytes(
    const program::RankProgram& program, const mesh::Shape& mesh, std::uint64_t elements_per_call);

}  // namespace isoscale::executor::host
