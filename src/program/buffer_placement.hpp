// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.hpp"

namespace isoscale::program {

inline constexpr std::uint64_t buffer_alignment = 256;  ///< bytes
/// Returns the bytes that a buffer takes: a multiple of the alignment, and never 0.
[[nodiscard]] constexpr std::uint64_t padded_bytes(std::uint64_t bytes) {
  return (bytes == 0 ? 1 : (bytes + buffer_alignment - 1) / buffer_alignment) * buffer_alignment;
}

/// Gives the buffers of a program their offsets, and sets the sizes of the arenas. All ops and
/// their waits must be known. Two buffers share bytes only if every op that uses one is known to
/// finish before any op that uses the other, so no op has to wait for the sake of storage.
/// may_end[i] is false if buffer i keeps its storage to the end. A buffer that ops of several
/// sections use keeps it too, because a step may be run again and then reads it again.
void place_buffers(RankProgram& program, const std::vector<bool>& may_end);

}  // namespace isoscale::program
