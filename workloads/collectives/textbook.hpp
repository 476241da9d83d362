// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "program/builder.hpp"
#include "workloads/collectives/cases.hpp"

namespace isoscale::workloads::collectives {

/// One call of a collective as its textbook algorithm: exchanges and additions on one stream.
struct TextbookCall {
  Operation operation = Operation::all_reduce;
  Implementation implementation = Implementation::ring;
  mesh::Axis axis = mesh::Axis::dp;
  int members = 1;
  int me = 0;  ///< place of the rank that plays
  program::Slice send{}, receive{};
  program::BufferId scratch = program::no_buffer;  ///< of scratch_room() elements
};

/// Elements of scratch that a call needs, of which `whole` is the larger of what a rank sends and
/// receives: half for what comes in, half for partial sums.
[[nodiscard]] constexpr std::uint64_t scratch_room(std::uint64_t whole) { return 2 * whole; }

/// Emits the call. ring: Patarasuk and Yuan, J. Parallel Distrib. Comput. 69 (2009); tree: binomial
/// reduction and broadcast; recursive doubling, and halving for reduce_scatter: Thakur,
/// Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19 (2005).
void emit_textbook(program::Builder& builder, const TextbookCall& call);

}  // namespace isoscale::workloads::collectives
