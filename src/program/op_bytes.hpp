// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "program/program.hpp"

namespace isoscale::program {

/// Bytes of a slice's elements; 0 without a buffer.
[[nodiscard]] std::uint64_t slice_bytes(const RankProgram& program, const Slice& slice);

/// Bytes that an op which does not communicate reads and writes, each operand once: a strided
/// matrix counts its elements and not what lies between them, one that serves a whole batch counts
/// once.
[[nodiscard]] std::uint64_t local_bytes(const RankProgram& program, const Payload& payload);

}  // namespace isoscale::program
