// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/p2p/timed.hpp"

#include <algorithm>
#include <utility>

#include "workloads/p2p/p2p.hpp"

namespace isoscale::workloads::p2p {

std::vector<Timed> timed_of(const Setting& setting, int batch) {
  std::vector<Timed> list;
  for (const Round& round : setting.rounds_of(batch)) {
    for (const Kind kind : setting.pair_kinds) {
      list.push_back({.kind = kind, .pairs = round});
      if (kind == Kind::bandwidth) list.push_back({.kind = kind, .back = true, .pairs = round});
    }
  }
  if (!list.empty()) return list;
  if (setting.bisects) {
    list.push_back({.kind = Kind::bisection, .pairs = bisection(setting.ranks)});
  }
  if (setting.all_to_all) list.push_back({.kind = Kind::all_to_all});
  return list;
}

bool is_silent(const Request& request, const Pair& pair) {
  return std::ranges::find(request.silent_pairs, std::pair{pair.low, pair.high}) !=
         request.silent_pairs.end();
}

bool is_of_all(Kind kind) { return kind == Kind::bisection || kind == Kind::all_to_all; }

Part part_of(const Request& request, const Setting& setting, const Timed& timed, int rank) {
  if (is_of_all(timed.kind) && !request.silent_pairs.empty()) return {};
  if (timed.kind == Kind::all_to_all) return {.role = Part::Role::of_all};
  for (const Pair& pair : timed.pairs) {
    if (pair.low != rank && pair.high != rank) continue;
    if (is_silent(request, pair)) return {};
    const int hop = pair.high - pair.low;
    return pair.low == rank ? Part{Part::Role::low, hop}
                            : Part{Part::Role::high, setting.ranks - hop};
  }
  return {};
}

std::vector<Expectation> expect(const Request& request, int batch, std::size_t index, int rank) {
  const Setting setting = setting_of(request);
  const Timed timed = timed_of(setting, batch).at(index);
  const Part part = part_of(request, setting, timed, rank);
  std::vector<Expectation> mine;
  const auto receives = [&](int from, std::uint64_t offset, std::uint64_t count,
                            std::uint64_t first) {
    mine.push_back({.slice = {.buffer = work, .offset = offset, .count = count},
                    .sources = {from},
                    .first = first});
  };
  if (part.role == Part::Role::of_all) {
    for (int other = 0; other < setting.ranks; ++other) {
      receives(other, static_cast<std::uint64_t>(other) * setting.part, setting.part,
               static_cast<std::uint64_t>(rank) * setting.part);
    }
  } else if (part.role != Part::Role::rests) {
    const bool is_low = part.role == Part::Role::low;
    if (timed.kind == Kind::bandwidth && is_low != timed.back) return mine;  // it sends
    receives((rank + part.hop) % setting.ranks, 0,
             timed.kind == Kind::latency ? latency_bytes : setting.messages * setting.bytes, 0);
  }
  return mine;
}

}  // namespace isoscale::workloads::p2p
