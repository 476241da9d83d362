// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/needs.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "executor/host/host.hpp"

namespace isoscale::runner {

std::vector<program::Facts> facts_of_programs(const program::ProgramSet& set) {
  std::vector<program::Facts> facts;
  std::transform(
      set.programs.begin(), set.programs.end(), std::back_inserter(facts),
      [&](const program::RankProgram& program) { return program::facts(program, set.mesh); });
  return facts;
}

MemoryNeed memory_need(const program::RankProgram& program, const mesh::Shape& mesh,
                       const PlayedAs& how) {
  const auto arenas =
      how.added ? program::arenas_with(*how.added, program, mesh) : program.arena_bytes;
  MemoryNeed need{};
  std::ranges::transform(arenas, need.begin(),
                         [](std::uint64_t arena) { return units::Bytes{arena}; });
  if (how.device != "host") return need;
  const auto staging =
      executor::host::staging_bytes(program, mesh, executor::max_elements_per_call);
  units::Bytes& device = need[static_cast<std::size_t>(program::Space::device)];
  device = std::accumulate(staging.begin(), staging.end(), device);
  return need;
}

units::Bytes memory_total(const MemoryNeed& need) {
  return std::accumulate(need.begin(), need.end(), units::Bytes{0});
}

units::Bytes memory_from(executor::MemoryPool pool, const MemoryNeed& need) {
  if (pool == executor::MemoryPool::node) return memory_total(need);
  const auto in = [&](program::Space space) { return need[static_cast<std::size_t>(space)]; };
  return memory_total(need) - in(program::Space::pinned)-in(program::Space::pageable);
}

units::Bytes sent_total(const program::Facts& facts) {
  units::Bytes sum{0};
  for (const program::Traffic& entry : facts.traffic) sum += entry.sent;
  return sum;
}

}  // namespace isoscale::runner
