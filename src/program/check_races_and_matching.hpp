// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "program/outline.hpp"
#include "program/program.hpp"

namespace isoscale::program {

/// Proves that the programs of all ranks run to completion under rendezvous semantics: every
/// message and collective finds partners with the same kind and size, and no cycle of waits exists.
/// The proof is made once with the streams as written, and once with all streams of a rank merged
/// into one in program order. Some executors run ops in that order, and it is a safe launch order
/// for concurrent NCCL communicators. check() also calls check_races() for every program. If the
/// proof fails, it throws base::Error, which names ranks, ops, layers and microbatches.
void check(const ProgramSet& set);

/// Proves that any two ops of a rank that touch the same storage are ordered, if at least one of
/// them writes. The proof does not rely on the dependencies that the builder derived. If it fails,
/// the function throws base::Error, which names the ops.
void check_races(const RankProgram& program, const mesh::Shape& mesh);

}  // namespace isoscale::program
