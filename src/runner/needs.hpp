// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "executor/executor.hpp"
#include "program/added_sections.hpp"
#include "program/facts.hpp"
#include "program/program.hpp"
#include "units/quantity.hpp"

/// What the programs of a point say that they do and need.
namespace isoscale::runner {

/// By program, not by rank: index it with ProgramSet::program_of_rank. Ranks that are alike share a
/// program, and walking through one of a large model takes a while.
[[nodiscard]] std::vector<program::Facts> facts_of_programs(const program::ProgramSet& set);

/// Storage that a session takes on one rank, by program::Space.
using MemoryNeed = std::array<units::Bytes, program::space_count>;

/// How a program is played, as far as its memory depends on it.
struct PlayedAs {
  std::optional<program::AddedSections> added{};  ///< absent: the program as it is
  std::string_view device{};                      ///< "host": its staging memory counts too
};
/// On the host exactly what its executor takes; on a device without the work space of its
/// libraries.
[[nodiscard]] MemoryNeed memory_need(const program::RankProgram& program, const mesh::Shape& mesh,
                                     const PlayedAs& how);

/// All spaces together.
[[nodiscard]] units::Bytes memory_total(const MemoryNeed& need);

/// The part that is taken from the pool: of a device's own memory, what is not the host's.
[[nodiscard]] units::Bytes memory_from(executor::MemoryPool pool, const MemoryNeed& need);

/// What a rank puts on links in one step, see program::Traffic::sent.
[[nodiscard]] units::Bytes sent_total(const program::Facts& facts);

}  // namespace isoscale::runner
