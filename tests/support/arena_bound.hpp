// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "program/hazards.hpp"
#include "program/operands.hpp"
#include "program/program.hpp"
#include "program/storage.hpp"

/// The least storage that buffers need, given the order of the ops that use them.
namespace isoscale::program {

/// The largest weight of a set of elements of which no two are ordered, for a strict partial order
/// `is_before`. By Dilworth's theorem with weights it is the sum of all weights less a maximal flow
/// from elements to those that come after them, where each sends and receives at most its weight.
template <class IsBefore>
[[nodiscard]] std::uint64_t heaviest_antichain(const std::vector<std::uint64_t>& weights,
                                               const IsBefore& is_before) {
  const std::size_t n = weights.size();
  std::vector<std::vector<std::size_t>> after(n), before(n);
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      if (a == b || !is_before(a, b)) continue;
      after[a].push_back(b);
      before[b].push_back(a);
    }
  }
  std::vector<std::uint64_t> unsent = weights, unreceived = weights;
  std::vector<std::vector<std::uint64_t>> flow(n, std::vector<std::uint64_t>(n));
  std::uint64_t total = 0, carried = 0;
  for (const std::uint64_t weight : weights) total += weight;
  // Nodes 0 ... n-1 send, n ... 2n-1 receive; what has been carried can be taken back.
  std::vector<int> level(2 * n);
  std::vector<std::size_t> next(2 * n);
  const auto search = [&] {
    std::ranges::fill(level, -1);
    std::deque<std::size_t> open;
    for (std::size_t a = 0; a < n; ++a) {
      if (unsent[a] == 0) continue;
      level[a] = 0;
      open.push_back(a);
    }
    bool found = false;
    for (; !open.empty(); open.pop_front()) {
      const std::size_t node = open.front();
      const auto reach = [&](std::size_t other) {
        if (level[other] >= 0) return;
        level[other] = level[node] + 1;
        open.push_back(other);
      };
      if (node < n) {
        for (const std::size_t b : after[node]) reach(n + b);
        continue;
      }
      found |= unreceived[node - n] > 0;
      for (const std::size_t a : before[node - n]) {
        if (flow[a][node - n] > 0) reach(a);
      }
    }
    return found;
  };
  const std::function<std::uint64_t(std::size_t, std::uint64_t)> push = [&](std::size_t node,
                                                                            std::uint64_t most) {
    if (node >= n && unreceived[node - n] > 0) {
      const std::uint64_t amount = std::min(most, unreceived[node - n]);
      unreceived[node - n] -= amount;
      return amount;
    }
    const auto& others = node < n ? after[node] : before[node - n];
    for (; next[node] < others.size(); ++next[node]) {
      const std::size_t other = others[next[node]];
      const std::size_t target = node < n ? n + other : other;
      if (level[target] != level[node] + 1) continue;
      std::uint64_t& edge = node < n ? flow[node][other] : flow[other][node - n];
      const std::uint64_t room = node < n ? most : std::min(most, edge);
      const std::uint64_t amount = room == 0 ? 0 : push(target, room);
      if (amount == 0) continue;
      edge = node < n ? edge + amount : edge - amount;
      return amount;
    }
    return std::uint64_t{0};
  };
  while (search()) {
    std::ranges::fill(next, 0);
    for (std::size_t a = 0; a < n; ++a) {
      while (unsent[a] > 0) {
        const std::uint64_t amount = push(a, unsent[a]);
        if (amount == 0) break;
        unsent[a] -= amount;
        carried += amount;
      }
    }
  }
  return total - carried;
}

/// The least arena of a space in which two buffers share bytes only if every op that uses one is
/// known to finish before any that uses the other. What setup leaves to a step is kept for ever.
[[nodiscard]] inline std::uint64_t least_arena(const RankProgram& program, Space space) {
  struct Use {
    std::optional<std::size_t> first;
    std::size_t last = 0;  ///< sections
    Clock known, users;    ///< of the one section
  };
  std::vector<Use> uses(program.buffers.size());
  const std::vector<const Program*> sections = program.sections();
  for (std::size_t s = 0; s < sections.size(); ++s) {
    const std::vector<Clock> before = clocks_before(*sections[s]);
    Clock counts;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Op& op = sections[s]->ops[i];
      ++counts.done[op.stream];
      for_each_slice(op.payload, [&](const Slice& slice, Mode) {
        Use& use = uses[slice.buffer];
        if (!use.first) use.known = before[i];
        if (!use.first) use.first = s;
        use.last = s;
        use.known.meet(before[i]);
        use.users.join(op.stream, counts.done[op.stream]);
      });
    }
  }
  std::uint64_t kept = 0;
  std::vector<std::uint64_t> weights;
  std::vector<const Use*> passing;
  for (std::size_t id = 0; id < uses.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (!uses[id].first || buffer.space != space) continue;
    const std::uint64_t taken = Arena::footprint(buffer.count * element_size(buffer.dtype));
    if (*uses[id].first == 0 && uses[id].last > 0) {
      kept += taken;
    } else {
      weights.push_back(taken);
      passing.push_back(&uses[id]);
    }
  }
  return kept + heaviest_antichain(weights, [&](std::size_t a, std::size_t b) {
           const Use& one = *passing[a];
           const Use& other = *passing[b];
           if (one.last < *other.first) return true;
           return one.first == one.last && other.first == other.last && one.last == *other.first &&
                  other.known.covers(one.users);
         });
}

}  // namespace isoscale::program
