// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// Which pairs of ranks exchange messages at the same time; pure arithmetic.
namespace isoscale::workloads::p2p {

/// Two ranks of a point, low < high.
struct Pair {
  int low = 0, high = 0;

  auto operator<=>(const Pair&) const = default;
};
/// Pairs that communicate at the same time: no rank is in two of them.
using Round = std::vector<Pair>;

/// Every pair once, in ranks - 1 rounds (in `ranks` rounds for an odd number, of which each lets
/// another rank rest): the circle method of tournaments.
[[nodiscard]] std::vector<Round> all_pairs(int ranks);

/// (r, r + 1) and the pair that closes the ring: two rounds, three for an odd number of ranks.
[[nodiscard]] std::vector<Round> neighbours(int ranks);

/// `count` of the rounds of all_pairs (one more for an odd number of ranks; all, when there are no
/// more), drawn by `seed`, in order: each rank then meets at least `count` others, and at most one
/// more.
[[nodiscard]] std::vector<Round> sample(int ranks, int count, std::uint64_t seed);

/// Every pair once, never two at a time that have a rank on the same node: links that ranks of a
/// node share are measured with one user. node_of_rank[r] is the node of rank r.
[[nodiscard]] std::vector<Round> isolated(std::span<const int> node_of_rank);

/// (r, r + ranks/2): one matching across the middle; the last of an odd number rests.
[[nodiscard]] Round bisection(int ranks);

}  // namespace isoscale::workloads::p2p
