// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/p2p/rounds.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

#include "program/fill_and_checksum.hpp"

namespace isoscale::workloads::p2p {
namespace {

Pair pair_of(int a, int b) { return {.low = std::min(a, b), .high = std::max(a, b)}; }

/// Adds pairs that must not be played together: one to each round, from the first on.
void deal_out(const std::vector<Pair>& pairs, std::size_t first, std::vector<Round>& rounds) {
  if (rounds.size() < first + pairs.size()) rounds.resize(first + pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) rounds[first + i].push_back(pairs[i]);
}

}  // namespace

std::vector<Round> all_pairs(int ranks) {
  if (ranks < 2) return {};
  // One seat stays, the others move on by one; an odd number leaves the staying seat empty.
  const int seats = ranks + ranks % 2;
  std::vector<Round> rounds(static_cast<std::size_t>(seats) - 1);
  for (int round = 0; round < seats - 1; ++round) {
    Round& pairs = rounds[static_cast<std::size_t>(round)];
    if (seats == ranks) pairs.push_back(pair_of(round, seats - 1));
    for (int i = 1; i < seats / 2; ++i) {
      pairs.push_back(pair_of((round + i) % (seats - 1), (round - i + seats - 1) % (seats - 1)));
    }
    std::ranges::sort(pairs);
  }
  return rounds;
}

std::vector<Round> neighbours(int ranks) {
  if (ranks <= 3) return all_pairs(ranks);
  std::vector<Round> rounds(ranks % 2 == 0 ? 2 : 3);
  for (int rank = 0; rank + 1 < ranks; ++rank) {
    rounds[static_cast<std::size_t>(rank % 2)].push_back({.low = rank, .high = rank + 1});
  }
  rounds[ranks % 2 == 0 ? 1 : 2].push_back({.low = 0, .high = ranks - 1});
  for (Round& round : rounds) std::ranges::sort(round);
  return rounds;
}

std::vector<Round> sample(int ranks, int count, std::uint64_t seed) {
  std::vector<Round> rounds = all_pairs(ranks);
  // In a round of an odd number of ranks one rests, another in each: a further round lets those
  // that rested catch up.
  const auto wanted = static_cast<std::size_t>(count) + static_cast<std::size_t>(ranks % 2);
  // Those with the smallest draws, so that the same seed gives the same rounds everywhere.
  std::vector<std::pair<std::uint64_t, std::size_t>> draws;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    draws.emplace_back(program::scatter_bits(program::fill_origin(seed) + i), i);
  }
  std::ranges::sort(draws);
  if (draws.size() > wanted) draws.resize(wanted);
  std::vector<std::size_t> chosen;
  for (const auto& [draw, i] : draws) chosen.push_back(i);
  std::ranges::sort(chosen);
  std::vector<Round> result;
  for (const std::size_t i : chosen) result.push_back(std::move(rounds[i]));
  return result;
}

std::vector<Round> isolated(std::span<const int> node_of_rank) {
  std::map<int, std::vector<int>> ranks_of_node;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    ranks_of_node[node_of_rank[rank]].push_back(static_cast<int>(rank));
  }
  std::vector<std::vector<int>> nodes;
  for (auto& [node, ranks] : ranks_of_node) nodes.push_back(std::move(ranks));
  std::vector<Round> rounds;
  for (const std::vector<int>& node : nodes) {
    std::vector<Pair> within;
    for (std::size_t i = 0; i < node.size(); ++i) {
      for (std::size_t j = i + 1; j < node.size(); ++j) within.push_back(pair_of(node[i], node[j]));
    }
    deal_out(within, 0, rounds);
  }
  // Nodes meet as ranks do elsewhere; while two of them meet, their ranks do one pair at a time.
  for (const Round& meetings : all_pairs(static_cast<int>(nodes.size()))) {
    const std::size_t first = rounds.size();
    for (const Pair& meeting : meetings) {
      std::vector<Pair> between;
      for (const int a : nodes[static_cast<std::size_t>(meeting.low)]) {
        for (const int b : nodes[static_cast<std::size_t>(meeting.high)]) {
          between.push_back(pair_of(a, b));
        }
      }
      deal_out(between, first, rounds);
    }
  }
  for (Round& round : rounds) std::ranges::sort(round);
  return rounds;
}

Round bisection(int ranks) {
  Round round;
  for (int rank = 0; rank < ranks / 2; ++rank) {
    round.push_back({.low = rank, .high = rank + ranks / 2});
  }
  return round;
}

}  // namespace isoscale::workloads::p2p
