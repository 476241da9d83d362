// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/transports.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace isoscale::executor {
namespace {

/// visit(program, slice) for every slice that travels by Transport::symmetric.
template <class Visit>
void for_each_symmetric(const program::RankProgram& program, const Visit& visit) {
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) {
      if (const auto* collective = std::get_if<program::Collective>(&op.payload)) {
        if (collective->transport != program::Transport::symmetric) continue;
        visit(collective->send);
        visit(collective->receive);
      } else if (const auto* exchange = std::get_if<program::Exchange>(&op.payload)) {
        if (exchange->transport != program::Transport::symmetric) continue;
        for (const program::Transfer& transfer : exchange->transfers) visit(transfer.slice);
      }
    }
  }
}

}  // namespace

bool uses_symmetric(const program::ProgramSet& set) {
  return std::ranges::any_of(set.programs, [](const program::RankProgram& program) {
    bool found = false;
    for_each_symmetric(program, [&](const program::Slice& /*slice*/) { found = true; });
    return found;
  });
}

void require_transports(const program::ProgramSet& set, const Description& device) {
  if (!uses_symmetric(set)) return;
  if (!device.symmetric_problem.empty()) throw Unsupported(device.symmetric_problem);
  for (const program::RankProgram& program : set.programs) {
    for_each_symmetric(program, [&](const program::Slice& slice) {
      if (slice.buffer == program::no_buffer) return;
      const program::Space space = program.buffers.at(slice.buffer).space;
      if (space == program::Space::symmetric) return;
      throw base::Error(
          fmt::format("what travels by transport symmetric lies in {} memory, not in symmetric",
                      program::name(space)));
    });
  }
}

}  // namespace isoscale::executor
