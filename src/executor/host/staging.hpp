// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>

#include "mesh/mesh.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"

/// Memory beside a program's arenas in which the host copies data aside where MPI cannot work in
/// place. The calls of one stream follow each other and share one piece, as large as the largest of
/// them needs.
namespace isoscale::executor::host {

/// MPICH 4.0 takes MPI_IN_PLACE for an address where the root of a reduction is not rank 0.
[[nodiscard]] bool crashes_in_place(program::CollectiveKind kind, std::int32_t root);

/// By stream, over all sections of the program. `elements_per_call`: the most that one MPI call is
/// given.
[[nodiscard]] std::array<units::Bytes, program::max_streams> staging_bytes(
    const program::RankProgram& program, const mesh::Shape& mesh, std::uint64_t elements_per_call);

}  // namespace isoscale::executor::host
