// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/needs.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace isoscale::runner {

std::vector<program::Facts> facts_of_programs(const program::ProgramSet& set) {
  std::vector<program::Facts> facts;
  std::transform(
      set.programs.begin(), set.programs.end(), std::back_inserter(facts),
      [&](const program::RankProgram& program) { return program::facts(program, set.mesh); });
  return facts;
}

units::Bytes memory_total(const program::Facts& facts) {
  return std::accumulate(facts.memory.begin(), facts.memory.end(), units::Bytes{0});
}

units::Bytes memory_from(executor::MemoryPool pool, const program::Facts& facts) {
  if (pool == executor::MemoryPool::node) return memory_total(facts);
  const auto in = [&](program::Space space) {
    return facts.memory[static_cast<std::size_t>(space)];
  };
  return memory_total(facts) - in(program::Space::pinned)-in(program::Space::pageable);
}

units::Bytes sent_total(const program::Facts& facts) {
  units::Bytes sum{0};
  for (const program::Traffic& entry : facts.traffic) sum += entry.sent;
  return sum;
}

}  // namespace isoscale::runner
