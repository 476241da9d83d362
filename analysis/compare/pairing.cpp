// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/pairing.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace isoscale::analysis {
namespace {

/// A pair that could be, and how good it would be.
struct Candidate {
  Pair pair;
  std::size_t common = 0;    ///< points
  std::size_t launches = 0;  ///< of these points, on both sides

  /// Orders the best first.
  [[nodiscard]] auto rank() const {
    return std::tuple{pair.unlike.size(), -static_cast<std::ptrdiff_t>(common),
                      -static_cast<std::ptrdiff_t>(launches), pair.first, pair.other};
  }
};

std::size_t launches_at(const JoinedCurve& curve, std::span<const int> ranks) {
  std::size_t count = 0;
  for (const auto& launches : curve.launches) {
    if (std::ranges::find(ranks, launches.front().point->data->ranks) != ranks.end()) {
      count += launches.size();
    }
  }
  return count;
}

std::vector<Candidate> candidates(std::span<const JoinedCurve> first,
                                  std::span<const JoinedCurve> other) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t j = 0; j < other.size(); ++j) {
      if (first[i].experiment.workload != other[j].experiment.workload) continue;
      const std::vector<int> common = common_ranks(first[i].curve, other[j].curve);
      if (common.empty()) continue;
      all.push_back(
          {.pair = {.first = i, .other = j, .unlike = differences_between(first[i], other[j])},
           .common = common.size(),
           .launches = launches_at(first[i], common) + launches_at(other[j], common)});
    }
  }
  std::ranges::sort(all, {}, &Candidate::rank);
  return all;
}

}  // namespace

std::vector<int> common_ranks(const Curve& a, const Curve& b) {
  std::vector<int> ranks;
  for (const PointReport& point : a.points) {
    if (point_of(b, point.data->ranks) != nullptr) ranks.push_back(point.data->ranks);
  }
  return ranks;
}

std::vector<Pair> pair_curves(std::span<const JoinedCurve> first,
                              std::span<const JoinedCurve> other) {
  std::vector<bool> used_first(first.size()), used_other(other.size());
  std::vector<Pair> pairs;
  for (Candidate& at : candidates(first, other)) {
    if (used_first[at.pair.first] || used_other[at.pair.other]) continue;
    used_first[at.pair.first] = used_other[at.pair.other] = true;
    pairs.push_back(std::move(at.pair));
  }
  std::ranges::sort(pairs, {}, &Pair::first);
  return pairs;
}

}  // namespace isoscale::analysis
