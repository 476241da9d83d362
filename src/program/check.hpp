// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "program/outline.hpp"
#include "program/program.hpp"

namespace isoscale::program {

/// Proves that the programs of all ranks play to their end: every message and collective finds its
/// partners with the same kind and size, and nothing waits in a circle, under rendezvous semantics,
/// once as streamed and once with all streams of a rank folded into program order (inline play, and
/// a launch order that concurrent NCCL communicators are safe with). Also proves every two ops of a
/// rank that touch the same storage, one of them writing, to be ordered.
/// Throws base::Error that names ranks, ops, layers and microbatches.
void check(const ProgramSet& set);

/// The second half of check, for one program: independent of how its builder found dependencies.
void check_races(const RankProgram& program, const mesh::Shape& mesh);

}  // namespace isoscale::program
