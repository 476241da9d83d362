// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "comm/world.hpp"

namespace isoscale::comm {
namespace {

/// Whether it begins as what a vote has found does.
bool names_rank(std::string_view reason) {
  constexpr std::string_view before{"rank "}, digits{"0123456789"};
  if (!reason.starts_with(before)) return false;
  reason.remove_prefix(before.size());
  const std::size_t end = reason.find_first_not_of(digits);
  return end != 0 && end != reason.npos && reason.substr(end).starts_with(": ");
}

}  // namespace

Vote all_ok(const Communicator& communicator, std::string_view problem) {
  // The lowest rank with a problem speaks; `size` stands for none.
  const int own = problem.empty() ? communicator.size() : communicator.rank();
  const int speaker = static_cast<int>(communicator.all_min(own));
  if (speaker == communicator.size()) return {};
  const std::string reason = communicator.broadcast(std::string{problem}, speaker);
  // What was voted on before, by fewer ranks or the same, says whose it is.
  if (names_rank(reason)) return {.ok = false, .why = reason};
  return {.ok = false, .why = fmt::format("rank {}: {}", communicator.world_rank(speaker), reason)};
}

std::vector<int> node_of_rank(const Communicator& communicator) {
  // Ranks of a node keep their order, so its first rank stands for it.
  const std::int64_t leader =
      communicator.split_node().broadcast(std::int64_t{communicator.rank()});
  std::map<std::int64_t, int> number;
  std::vector<int> nodes;
  for (const std::int64_t first : communicator.all_gather(leader)) {
    nodes.push_back(number.try_emplace(first, static_cast<int>(number.size())).first->second);
  }
  return nodes;
}

}  // namespace isoscale::comm
