// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/microbench/row_report.hpp"
#include "results/records/run_data.hpp"

/// Evaluates all rows of a micro-benchmark's point together: pairs of ranks and the slow ones among
/// them, and the overlap of multiplications with collectives.
namespace isoscale::analysis::microbench {

struct PairReport {
  int src = 0, dst = 0;  ///< ranks of the point
  std::string link_class{};
  std::optional<double> latency{};        ///< seconds, one way
  std::optional<double> bandwidth{};      ///< bytes/s from src to dst
  std::optional<double> bidirectional{};  ///< bytes/s of both directions at once, together
  std::string failure{};                  ///< why something of it is missing; "" when nothing is
};

/// Merges rows of the kinds latency, bandwidth and bidirectional to pairs, ordered by src and dst.
/// Latency (half of a round trip) and bidirectional bandwidth are the same in both directions, so
/// both directions get them.
[[nodiscard]] std::vector<PairReport> merge_pairs(std::span<const RowReport> rows);

struct ClassReport {
  std::string name;
  int pairs = 0;
  std::optional<double> latency, bandwidth, bidirectional;  ///< medians over pairs
  std::optional<double> lowest, highest;                    ///< bandwidth
};
/// Returns the classes in order of falling median bandwidth.
[[nodiscard]] std::vector<ClassReport> classes_of(std::span<const PairReport> pairs);

struct SlowPair {
  int src = 0, dst = 0;
  std::string link_class;
  std::string_view quantity;      ///< "bandwidth", "bidirectional", "latency"
  double value = 0, typical = 0;  ///< bytes/s or seconds; `typical` is the reference
  std::string from, to;           ///< "rank 3 on node17, GPU 0000:3b:00.0"

  /// Returns the pair's speed as a share of the typical speed, below 1.
  [[nodiscard]] double share() const {
    return quantity == "latency" ? typical / value : value / typical;
  }
};
/// Returns the slow pairs. A pair is slow if its bandwidth is below the median of its class by more
/// than 10% and by more than 3.5 scaled median absolute deviations (1.4826 MAD; both of log
/// bandwidth). A pair below a quarter of the median is always slow, since slow pairs themselves
/// widen the spread. In a class of fewer than four pairs, which has no usable spread, a pair is
/// slow at more than 25% below the best one. A bidirectional bandwidth is reported once, not for
/// each direction. Latencies are judged alike, by the messages per second that they allow: at 1.5
/// times the median, and with fewer than four pairs at twice the best.
[[nodiscard]] std::vector<SlowPair> slow_pairs(std::span<const PairReport> pairs,
                                               const results::PointData& point,
                                               std::span<const results::RankFacts> facts);

/// Returns "rank 3 on node17, GPU 0000:3b:00.0" for a rank of the point: MPI's rank, host and GPU,
/// as far as they are known.
[[nodiscard]] std::string rank_name(const results::PointData& point, int rank,
                                    std::span<const results::RankFacts> facts);

/// A multiplication and a collective, each alone and then both at once; seconds of one call.
struct OverlapReport {
  std::string pair;  ///< number of the pair
  std::string collective, dtype;
  std::optional<double> bytes, m, n, k;
  std::optional<double> gemm, communication;  ///< alone
  std::optional<double> together;             ///< until both have ended
  /// The time of each part during the overlap over its time alone, 1.0 = no slowdown. Absent where
  /// a part was not timed during the overlap (rows with the part "gemm together" or "collective
  /// together").
  std::optional<double> gemm_slowdown, communication_slowdown;
  /// The times alone from traced plays, in seconds; the slowdowns are relative to these.
  std::optional<double> gemm_traced, communication_traced;
  /// The share of the shorter part that is hidden: (gemm + collective - together) / min(gemm,
  /// collective). It is 1 when all of this part is hidden, 0 when none is, and negative when both
  /// together take longer than one after the other. The 95% interval combines those of the three
  /// medians in quadrature.
  std::optional<statistics::Located> hidden;
  /// True if the interval of `hidden` is no wider than 1, the range of a share. A wider one is
  /// shown, but no conclusion is drawn from it.
  bool hidden_known = false;
  std::string failure;  ///< why something of it is missing; "" when nothing failed
  std::string
      why_unknown;  ///< why a share or slowdown is absent or not known though nothing failed
};

/// Returns one entry for each pair of a multiplication and a collective, in the order of their
/// first rows.
[[nodiscard]] std::vector<OverlapReport> merge_overlaps(std::span<const RowReport> rows);

/// The results from the rows of a micro-benchmark's point.
struct BenchReport {
  std::vector<RowReport> rows;  ///< as measured, one for each row of the data
  std::vector<PairReport> pairs;
  std::vector<ClassReport> classes;
  std::vector<SlowPair> slow;
  std::vector<OverlapReport> overlaps;
};

/// True if a point measures single operations instead of steps: it has rows, or would have some if
/// it had run.
[[nodiscard]] bool is_bench(const results::PointData& point);
/// The same for a point of which only the numbers of its steps and rows are known.
[[nodiscard]] bool is_bench(std::string_view workload, std::size_t steps, std::size_t rows);

[[nodiscard]] BenchReport report_bench(const results::RunData& run, const results::PointData& point,
                                       const results::CalibrationData& calibration);

}  // namespace isoscale::analysis::microbench
