// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "program/outline.hpp"
#include "program/program.hpp"

namespace isoscale::program {

/// Proves that the programs of all ranks play to their end: every message and collective finds
/// partners with the same kind and size, and no ops wait for each other in a circle, under
/// rendezvous semantics. It is proved once with the streams as written and once with all streams of
/// a rank folded into program order (inline play, and a launch order that is safe for concurrent
/// NCCL communicators). It also proves that any two ops of a rank that touch the same storage are
/// ordered, if one of them writes. Throws base::Error that names ranks, ops, layers and
/// microbatches.
void check(const ProgramSet& set);

/// Does the second half of check for one program, independently of how its builder found
/// dependencies.
void check_races(const RankProgram& program, const mesh::Shape& mesh);

}  // namespace isoscale::program
