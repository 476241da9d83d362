// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "program/operands.hpp"
#include "program/program.hpp"

/// Adds sections to finished programs: a step with checksums, checksums of the weights, sections
/// that save and restore the buffers that a step changes, and a step without communication.
namespace isoscale::program {

/// The checksums that a section computes on each rank of one program.
struct Sums {
  BufferId buffer = no_buffer;      ///< two i64 per checksum: sum, number of non-finite elements
  std::vector<std::uint32_t> of{};  ///< for each checksum, in program order: the index of the op
                                    ///< whose output is summed or, in a section that checks
                                    ///< weights, of the buffer that is summed
  /// Two i64 per checksum: the index of the element in which bits are flipped before the sum is
  /// taken, and the bits to flip. no_buffer if the section flips nothing.
  BufferId flips = no_buffer;
};

struct CheckedSection {
  Section section = Section::step;
  std::vector<Sums> sums{};  ///< one for each program of the set
};

/// True if checksums of the buffer can be taken: it is not in pageable memory, which kernels cannot
/// reach.
[[nodiscard]] bool has_checksum(const Buffer& buffer);

/// Appends a copy of the step that takes the checksums of each output right after its op, before
/// any other op may overwrite it. Outputs in buffers of which no checksum can be taken are left
/// out. Each rank in `flipping` gets a program of its own in which bits can be flipped. The buffer
/// Sums::flips of that program must be written before the section is run; zeros flip nothing.
[[nodiscard]] CheckedSection add_checked_step(ProgramSet& set, std::span<const int> flipping = {});

/// Appends a section that takes the checksums of each buffer of weights for which has_checksum() is
/// true. A buffer of more than 2^30 elements has several checksums.
[[nodiscard]] CheckedSection add_weight_check(ProgramSet& set);

/// The sections that save and restore the buffers that a step changes and the next step may read.
struct Replay {
  Section save = Section::step, restore = Section::step;
};
/// Appends the sections of a Replay. They need memory for a copy of each buffer they save.
[[nodiscard]] Replay add_replay(ProgramSet& set);

/// Sections that a run adds to the programs of a point (a measurement) of training steps.
enum class AddedSections : std::uint8_t {
  checks,             ///< add_checked_step and add_weight_check
  checks_and_replay,  ///< also add_replay
};
/// Returns for each space the bytes of its arena (the block of memory that holds all buffers of the
/// space) in a program to which these sections were added. The function does not add them, since
/// planning needs only the sizes.
[[nodiscard]] std::array<std::uint64_t, space_count> arenas_with(AddedSections added,
                                                                 const RankProgram& program,
                                                                 const mesh::Shape& mesh);

/// Returns the step's ops that do not communicate, in the same order on the same streams. An op
/// that waited for communication waits instead for the ops of this rank that had to finish before
/// that communication could begin.
[[nodiscard]] Program without_communication(const Program& step);

/// Appends without_communication() of the first step to every program, and returns the new section,
/// which touches only storage that the first step touches.
[[nodiscard]] Section add_solo_step(ProgramSet& set);

/// Returns the indices of the ops that without_communication keeps, in order.
[[nodiscard]] std::vector<std::uint32_t> solo_ops(const Program& step);

}  // namespace isoscale::program
