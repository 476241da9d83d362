// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/outline.hpp"
#include "program/program.hpp"

namespace isoscale::program {

/// Proves that the programs of all ranks play to their end under rendezvous semantics: every
/// message and collective finds partners with the same kind and size, and no ops wait for each
/// other in a circle. It is proved once with the streams as written and once with all streams of a
/// rank folded into program order (inline play, and a launch order that is safe for concurrent NCCL
/// communicators). It also does check_races() for every program. Throws base::Error that names
/// ranks, ops, layers and microbatches.
void check(const ProgramSet& set);

/// Proves that any two ops of a rank that touch the same storage are ordered, if one of them
/// writes, independently of how the builder found dependencies. Throws base::Error that names the
/// ops.
void check_races(const RankProgram& program, const mesh::Shape& mesh);

}  // namespace isoscale::program
