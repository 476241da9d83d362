// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/rows/row.hpp"
#include "results/run_data.hpp"

/// Point-to-point rows put together: who reaches whom how fast, and which pairs fall behind.
namespace isoscale::analysis {

struct PairReport {
  int src = 0, dst = 0;  ///< ranks of the point
  std::string link_class{};
  std::optional<double> latency{};        ///< seconds, one way
  std::optional<double> bandwidth{};      ///< bytes/s from src to dst
  std::optional<double> bidirectional{};  ///< bytes/s of both directions at once, together
  std::string failure{};                  ///< why something of it is missing; "" when nothing is
};

/// The pairs of kinds latency, bandwidth and bidirectional, ordered by src and dst. Latency (half
/// of a round trip) and bidirectional are the same from both ends and go to both.
[[nodiscard]] std::vector<PairReport> merge_pairs(std::span<const RowReport> rows);

struct ClassReport {
  std::string name;
  int pairs = 0;
  std::optional<double> latency, bandwidth, bidirectional;  ///< medians over pairs
  std::optional<double> lowest, highest;                    ///< bandwidth
};
/// By falling median bandwidth.
[[nodiscard]] std::vector<ClassReport> classes_of(std::span<const PairReport> pairs);

struct SlowPair {
  int src = 0, dst = 0;
  std::string link_class;
  std::string_view quantity;      ///< "bandwidth", "bidirectional", "latency"
  double value = 0, typical = 0;  ///< bytes/s, or s; typical: what it was compared with
  std::string from, to;           ///< "rank 3 on node17, GPU 0000:3b:00.0"

  /// Of the typical speed, below 1.
  [[nodiscard]] double share() const {
    return quantity == "latency" ? typical / value : value / typical;
  }
};
/// Pairs of a class whose bandwidth lies below the class's median by more than 3.5 of its scaled
/// median absolute deviations (1.4826 MAD; both of log bandwidth) and by more than 10%; always one
/// below a quarter of the median, since slow pairs themselves widen the spread. A class of
/// fewer than four pairs has no spread of its own to go by: there a pair is slow when it is more
/// than 25% below the best of its class. Bidirectional pairs count once. Latencies likewise, by how
/// many messages a second they allow: 1.5 times the median, of fewer than four twice the best.
[[nodiscard]] std::vector<SlowPair> slow_pairs(std::span<const PairReport> pairs,
                                               const results::PointData& point,
                                               std::span<const results::RankFacts> facts);

/// "rank 3 on node17, GPU 0000:3b:00.0", as far as it is known; MPI's rank of a point's rank.
[[nodiscard]] std::string rank_name(const results::PointData& point, int rank,
                                    std::span<const results::RankFacts> facts);

}  // namespace isoscale::analysis
