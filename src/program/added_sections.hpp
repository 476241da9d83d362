// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "program/operands.hpp"
#include "program/program.hpp"

/// Sections that are added to finished programs: steps with checksums, copies of what a step
/// changes, and a step without communication.
namespace isoscale::program {

/// The checksums that a section leaves on the ranks of one program.
struct Sums {
  BufferId buffer = no_buffer;      ///< two i64 per checksum: that, and elements not finite
  std::vector<std::uint32_t> of{};  ///< whose each is, in program order: an op, or a buffer
  /// Two i64 per checksum: which element of what it is taken of has bits flipped first, and which.
  BufferId flips = no_buffer;
};

struct CheckedSection {
  Section section = Section::step;
  std::vector<Sums> sums{};  ///< by program of the set
};

/// False for pageable memory, which kernels do not reach: no checksums are taken of it.
[[nodiscard]] bool has_checksum(const Buffer& buffer);

/// Appends the step once more, with a checksum of each output right after its op, before anybody
/// may write over it. Bits may be flipped on the rank `flipping`, if there is one: who plays the
/// section writes to its `flips` before, zeros for none. That rank has a program of its own then.
[[nodiscard]] CheckedSection add_checked_step(ProgramSet& set,
                                              std::optional<int> flipping = std::nullopt);

/// Appends a section that takes the checksum of each buffer of weights.
[[nodiscard]] CheckedSection add_weight_check(ProgramSet& set);

/// Sections that keep, and bring back, what a step changes and the next one reads.
struct Replay {
  Section save = Section::step, restore = Section::step;
};
/// Appends them. Takes as much memory again as the state has.
[[nodiscard]] Replay add_replay(ProgramSet& set);

/// Sections that a run adds to the programs of a point with steps.
enum class AddedSections : std::uint8_t {
  checks,             ///< add_checked_step and add_weight_check
  checks_and_replay,  ///< and add_replay
};
/// The arenas of a program once its sections have been added, in bytes per space, without the
/// sections themselves: for a plan, which builds none of them.
[[nodiscard]] std::array<std::uint64_t, space_count> arenas_with(AddedSections added,
                                                                 const RankProgram& program,
                                                                 const mesh::Shape& mesh);

/// The step's ops that do not communicate, in the same order on the same streams; one that waited
/// for communication waits for what that had to wait for.
[[nodiscard]] Program without_communication(const Program& step);

/// Appends that step to every program, and tells which section it is: it touches no storage that
/// the first does not.
[[nodiscard]] Section add_solo_step(ProgramSet& set);

/// Indices of the ops that without_communication keeps, in order.
[[nodiscard]] std::vector<std::uint32_t> solo_ops(const Program& step);

}  // namespace isoscale::program
