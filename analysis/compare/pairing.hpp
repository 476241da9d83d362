// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "analysis/compare/unlike.hpp"
#include "analysis/merge/join.hpp"

/// Which curve of another side is to be set beside a curve of the first.
namespace isoscale::analysis {

/// Two curves, by their places among those of either side.
struct Pair {
  std::size_t first = 0, other = 0;
  std::vector<Unlike> unlike;  ///< empty where they did the same
};

/// Pairs curves that have points of as many ranks: those that did the same before all others, those
/// with more points in common before those with fewer, and of the rest, of one workload, those that
/// differ in least. Each is in one pair at most; pairs in the order of `first`.
[[nodiscard]] std::vector<Pair> pair_curves(std::span<const JoinedCurve> first,
                                            std::span<const JoinedCurve> other);

/// Rank counts that both curves have points of, ascending.
[[nodiscard]] std::vector<int> common_ranks(const Curve& a, const Curve& b);

}  // namespace isoscale::analysis
