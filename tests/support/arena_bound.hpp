// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <deque>

#include "program/buffer_placement.hpp"
#include "program/op_clocks_and_buffer_history.hpp"
#include "program/operands.hpp"
#include "program/program.hpp"

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
  // Nodes 0 ... n-1 send, n ... 2n-1 receive; what has been carried can be taken back. Each round
  // carries what the shortest way from a sender to a receiver with room allows.
  constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();
  for (;;) {
    std::vector<std::size_t> from(2 * n, nowhere);
    std::deque<std::size_t> open;
    for (std::size_t a = 0; a < n; ++a) {
      if (unsent[a] > 0) from[a] = a;
      if (unsent[a] > 0) open.push_back(a);
    }
    std::size_t node = nowhere;
    for (; !open.empty() && node == nowhere; open.pop_front()) {
      const std::size_t at = open.front();
      if (at >= n && unreceived[at - n] > 0) node = at;
      for (const std::size_t other : at < n ? after[at] : before[at - n]) {
        const std::size_t to = at < n ? n + other : other;
        if (from[to] != nowhere || (at >= n && flow[other][at - n] == 0)) continue;
        from[to] = at;
        open.push_back(to);
      }
    }
    if (node == nowhere) return total - carried;
    std::vector<std::size_t> way{node};
    while (from[way.back()] != way.back()) way.push_back(from[way.back()]);
    std::uint64_t amount = std::min(unreceived[node - n], unsent[way.back()]);
    for (std::size_t i = 1; i + 1 < way.size(); i += 2) {
      amount = std::min(amount, flow[way[i]][way[i + 1] - n]);
    }
    for (std::size_t i = 0; i + 1 < way.size(); ++i) {
      if (way[i] >= n) flow[way[i + 1]][way[i] - n] += amount;
      if (way[i] < n) flow[way[i]][way[i + 1] - n] -= amount;
    }
    unsent[way.back()] -= amount;
    unreceived[node - n] -= amount;
    carried += amount;
  }
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
    const std::uint64_t taken = padded_bytes(buffer.count * element_size(buffer.dtype));
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
