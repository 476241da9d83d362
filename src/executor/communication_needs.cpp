// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/communication_needs.hpp"

#include <set>

namespace isoscale::executor {

CommunicationNeeds communication_needs(const program::ProgramSet& set) {
  std::set<std::pair<mesh::AxisSet, program::StreamId>> collectives;
  std::map<mesh::Axis, std::set<std::int32_t>> exchanges;
  for (const program::RankProgram& program : set.programs) {
    for (const program::Program* section : program.sections()) {
      for (const program::Op& op : section->ops) {
        if (const auto* collective = std::get_if<program::Collective>(&op.payload)) {
          collectives.emplace(collective->axes, op.stream);
        } else if (const auto* exchange = std::get_if<program::Exchange>(&op.payload)) {
          for (const program::Transfer& transfer : exchange->transfers) {
            const bool sends = transfer.direction == program::Direction::send;
            exchanges[transfer.axis].insert(sends ? transfer.offset : -transfer.offset);
          }
        }
      }
    }
  }
  CommunicationNeeds needs{.collectives = {collectives.begin(), collectives.end()},
                           .exchanges = {}};
  for (const auto& [axis, offsets] : exchanges) {
    needs.exchanges[axis].assign(offsets.begin(), offsets.end());
  }
  return needs;
}

}  // namespace isoscale::executor
