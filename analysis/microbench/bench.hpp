// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/microbench/row.hpp"
#include "results/run_data.hpp"

/// The rows of a micro-benchmark's point put together: pairs of ranks with those that fall behind,
/// and multiplications beside collectives.
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
/// Gives the classes by falling median bandwidth.
[[nodiscard]] std::vector<ClassReport> classes_of(std::span<const PairReport> pairs);

struct SlowPair {
  int src = 0, dst = 0;
  std::string link_class;
  std::string_view quantity;      ///< "bandwidth", "bidirectional", "latency"
  double value = 0, typical = 0;  ///< bytes/s, or s; typical: what it was compared with
  std::string from, to;           ///< "rank 3 on node17, GPU 0000:3b:00.0"

  /// The share of the typical speed, below 1.
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

/// A multiplication and a collective, each alone and then at once; seconds of one call.
struct OverlapReport {
  std::string pair;  ///< number of the pair
  std::string collective, dtype;
  std::optional<double> bytes, m, n, k;
  std::optional<double> gemm, communication;  ///< alone
  std::optional<double> together;             ///< until both have ended
  /// How much longer each part takes beside the other, 1.0 = as long as alone. Absent where the
  /// parts were not timed within the whole (parts "gemm together" and "collective together").
  std::optional<double> gemm_slowdown, communication_slowdown;
  /// Seconds alone, from traced plays, which the slowdowns are relative to.
  std::optional<double> gemm_traced, communication_traced;
  /// (gemm + collective - together) / the shorter of the two alone: 1 when it is hidden wholly, 0
  /// when nothing is, negative when together takes longer than one after the other. Its 95%
  /// interval combines those of the three medians in quadrature.
  std::optional<statistics::Located> hidden;
  /// True if the interval of `hidden` is at most as wide as the whole range from 0 to 1. A share
  /// that is not known is shown, but nothing is concluded from it.
  bool hidden_known = false;
  std::string failure;  ///< why something of it is missing; "" when nothing failed
  std::string
      why_unknown;  ///< why a share or slowdown is absent or not known though nothing failed
};

/// One entry for each pair, in the order of their first rows.
[[nodiscard]] std::vector<OverlapReport> merge_overlaps(std::span<const RowReport> rows);

/// All that follows from the rows of a micro-benchmark's point.
struct BenchReport {
  std::vector<RowReport> rows;  ///< as measured, one for each row of the data
  std::vector<PairReport> pairs;
  std::vector<ClassReport> classes;
  std::vector<SlowPair> slow;
  std::vector<OverlapReport> overlaps;
};

/// True if a point measures parts and not steps: it has rows, or had some if it had run.
[[nodiscard]] bool is_bench(const results::PointData& point);

[[nodiscard]] BenchReport report_bench(const results::RunData& run, const results::PointData& point,
                                       const results::CalibrationData& calibration);

}  // namespace isoscale::analysis
