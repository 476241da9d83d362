// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/check.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "program/match.hpp"
#include "program/outline.hpp"

namespace isoscale::program {
namespace {

struct NoTimes {
  static std::int64_t cost(int /*rank*/, std::uint32_t /*op*/) { return 0; }
  static void span(int /*rank*/, std::uint32_t /*op*/, std::int64_t /*start*/,
                   std::int64_t /*end*/) {}
  static void step(int /*rank*/, int /*play*/, std::int64_t /*begin*/, std::int64_t /*end*/) {}
};

void check_matching(const OutlineSet& set) {
  for (const Folding folding : {Folding::as_streamed, Folding::folded}) {
    NoTimes policy;
    Matcher<NoTimes>{set, folding, 1, policy}.run();
  }
}

/// A rank's uneven all_to_alls by communicator, in the order they are played.
using UnevenOps = std::map<std::pair<mesh::AxisSet, StreamId>, std::vector<const Collective*>>;

UnevenOps uneven_ops(const Program& program) {
  UnevenOps result;
  for (const Op& op : program.ops) {
    const auto* collective = std::get_if<Collective>(&op.payload);
    if (collective == nullptr || collective->send_counts.empty()) continue;
    result[{collective->axes, op.stream}].push_back(collective);
  }
  return result;
}

/// What a member sends to another is what that one receives from it. Call it after matching, which
/// has shown that the members' lists correspond.
void check_counts(const ProgramSet& set, Section section) {
  std::vector<UnevenOps> of_program;
  for (const RankProgram& program : set.programs) {
    of_program.push_back(uneven_ops(program.section(section)));
  }
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    for (const auto& [key, ops] : of_program[set.program_of_rank[static_cast<std::size_t>(rank)]]) {
      const std::vector<int> members = mesh::group_members(set.mesh, rank, key.first);
      const auto mine = static_cast<std::size_t>(mesh::group_index(set.mesh, rank, key.first));
      for (std::size_t i = 0; i < ops.size(); ++i) {
        for (std::size_t j = 0; j < members.size(); ++j) {
          const auto member = static_cast<std::size_t>(members[j]);
          const Collective& theirs = *of_program[set.program_of_rank[member]].at(key)[i];
          const std::uint64_t sent = ops[i]->send_counts.at(j);
          const std::uint64_t received = theirs.receive_counts.at(mine);
          if (sent == received) continue;
          throw base::Error(
              fmt::format("all_to_all {} on {}: rank {} sends {} elements to rank {}, which "
                          "receives {} from it",
                          i, mesh::to_string(key.first), rank, sent, members[j], received));
        }
      }
    }
  }
}

}  // namespace

void check(const ProgramSet& set) {
  for (const RankProgram& program : set.programs) check_races(program, set.mesh);
  const std::size_t sections = set.programs.front().section_count();
  for (const RankProgram& program : set.programs) {
    if (program.section_count() == sections) continue;
    throw base::Error(
        fmt::format("some ranks have {} sections, others {}", sections, program.section_count()));
  }
  for (std::size_t i = 0; i < sections; ++i) {
    const auto section = static_cast<Section>(i);
    check_matching(outline(set, section));
    check_counts(set, section);
  }
}

}  // namespace isoscale::program
