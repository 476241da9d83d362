// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "results/records/calibration_data.hpp"
#include "results/records/run_data.hpp"
#include "statistics/estimate.hpp"
#include "statistics/quantiles_and_fits.hpp"

/// Evaluates the rows of a micro-benchmark's point: the rates of each row, compared with the best
/// rates of the run and with the peaks of GPU datasheets (row_rates_and_datasheets.cpp), and from
/// all rows together the speed of pairs of ranks, the slow pairs, and the overlap of GEMMs with
/// collectives.
namespace isoscale::analysis::microbench {

/// The peak rates in a GPU's datasheet. Unknown rates are absent.
struct Datasheet {
  std::string_view gpu;                ///< the driver's name of the GPU contains this text
  std::optional<double> peak_16bit{};  ///< FLOP/s, dense, f16 and bf16 on tensor cores
  std::optional<double> peak_8bit{};   ///< FLOP/s, dense, fp8
  std::optional<double> memory{};      ///< bytes/s of the GPU's own memory
  std::optional<double> link{};        ///< bytes/s in one direction over NVLink

  /// Returns the dense peak for an element type such as "bf16"; absent if it is not known.
  [[nodiscard]] std::optional<double> peak(std::string_view dtype) const;
};

/// Returns the datasheet for the name of a GPU; null if there is none.
[[nodiscard]] const Datasheet* datasheet_of(std::string_view gpu_name);
/// Returns the datasheet for the GPU in a rank's facts. Null for CPUs, and for partitions of a GPU
/// (MIG), which do not reach its peaks.
[[nodiscard]] const Datasheet* datasheet_of(const results::RankFacts& facts);
/// Returns the datasheet of the GPUs of these ranks of a point, or of all its ranks if `ranks` is
/// empty; null unless all are of one model with a datasheet.
[[nodiscard]] const Datasheet* common_datasheet(std::span<const results::RankFacts> facts,
                                                const results::PointData& point,
                                                std::span<const int> ranks);

/// Returns busbw / algbw among n = `members` ranks by the definition of nccl-tests: 2 (n-1) / n for
/// all_reduce; (n-1) / n for reduce_scatter, all_gather, all_to_all, gather and scatter; 1 for
/// broadcast, reduce and sendrecv. Absent for barrier, which moves no data, for ops that are not
/// collectives, and for fewer than 1 member.
[[nodiscard]] std::optional<double> bus_factor(std::string_view op, double members);

struct RowReport {
  const results::RowData* data = nullptr;    ///< not owned
  std::optional<statistics::Estimate> time;  ///< seconds of one call
  /// 99th percentile of single calls; absent below 100 calls
  std::optional<statistics::Located> p99;
  std::optional<double> algbw, busbw;  ///< bytes/s at the median time; only for collectives
  std::optional<double> flops;         ///< FLOP/s of the slowest rank; only for GEMMs
  std::optional<double> of_ceiling;    ///< flops / the run's best rate for this element type
  std::optional<double> bandwidth;     ///< bytes/s; only for p2p and memory
  std::optional<double> of_peak;       ///< flops or device memory bandwidth / the datasheet's value
};

/// The references with which a row is compared. Not owned; null = not known.
struct RowReference {
  const results::CalibrationData* calibration = nullptr;
  const Datasheet* datasheet = nullptr;
};

/// True if the row has times of its operation. It may still have failed: because of wrong elements,
/// which reports show next to the rates, or because it was slower than expected.
[[nodiscard]] bool has_rates(const results::RowData& row);

/// True for a row of the workload `memory` that both reads and writes the device's own memory.
[[nodiscard]] bool is_within_device(const results::RowData& row);

/// Sets `known` to `other` if it has no value yet, to merge rows that each have some of the values.
template <class T>
void fill_in(T& known, T other) {
  if (known == T{}) known = std::move(other);
}

/// Computes the rates of a row. They are absent unless has_rates() is true.
[[nodiscard]] RowReport report_row(const results::RowData& row, const RowReference& reference);

struct PairReport {
  int src = 0, dst = 0;  ///< ranks of the point
  std::string link_class{};
  std::optional<double> latency{};        ///< seconds, one way
  std::optional<double> bandwidth{};      ///< bytes/s from src to dst
  std::optional<double> bidirectional{};  ///< bytes/s, sum of both directions at the same time
  std::string failure{};                  ///< why a value is missing; "" if none is
};

struct ClassReport {
  std::string name;
  int pairs = 0;
  std::optional<double> latency, bandwidth, bidirectional;  ///< medians over pairs
  std::optional<double> lowest, highest;                    ///< of the bandwidths of the pairs
};

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
/// Returns the slow pairs. In a class of at least four pairs, a pair is slow if its bandwidth is
/// more than 10% below the median and its logarithm is more than 3.5 scaled median absolute
/// deviations (1.4826 MAD) below. It is also slow below a quarter of the median, since slow pairs
/// widen the spread. In a smaller class it is slow if it is more than 25% below the best pair. A
/// bidirectional bandwidth is reported once. Latencies are judged likewise, as messages per second,
/// but with margins of 1.5 times the median latency or, in a smaller class, twice the lowest.
[[nodiscard]] std::vector<SlowPair> slow_pairs(std::span<const PairReport> pairs,
                                               const results::PointData& point,
                                               std::span<const results::RankFacts> facts);

/// Returns "rank 3 on node17, GPU 0000:3b:00.0" for a rank of the point: its number in
/// MPI_COMM_WORLD, its host, and its GPU or else the CPUs that it is bound to, as far as known.
[[nodiscard]] std::string rank_name(const results::PointData& point, int rank,
                                    std::span<const results::RankFacts> facts);

/// The times of a GEMM and a collective, each alone and then both at once; seconds of one call.
struct OverlapReport {
  std::string collective, dtype;
  std::optional<double> bytes, m, n, k;
  std::optional<double> gemm, communication;  ///< time alone
  std::optional<double> together;             ///< until both have ended
  /// The time of each part during the overlap divided by its time alone, both from traced
  /// repetitions. Absent if one of the two is missing or comes from fewer than 6 of them.
  std::optional<double> gemm_slowdown, communication_slowdown;
  /// The share of the shorter part that is hidden: (gemm + communication - together) / min(gemm,
  /// communication), which is negative if both together take longer than one after the other. The
  /// 95% interval combines those of the three medians in quadrature. Absent if a median is missing.
  std::optional<statistics::Located> hidden;
  /// True if the interval of `hidden` is at most 1 wide, so that reports can draw conclusions.
  bool hidden_known = false;
  std::string failure;      ///< why a part failed; "" if none did
  std::string why_unknown;  ///< why a share or slowdown is not known, although no part failed
};

/// Returns one entry for each pair of a GEMM and a collective, in the order of their first rows.
[[nodiscard]] std::vector<OverlapReport> merge_overlaps(std::span<const RowReport> rows);

/// The results of a micro-benchmark's point.
struct BenchReport {
  std::vector<RowReport> rows;  ///< as measured, one for each row of the data
  std::vector<PairReport> pairs;
  std::vector<ClassReport> classes;
  std::vector<SlowPair> slow;
  std::vector<OverlapReport> overlaps;
};

/// True if a point, even one that did not run, belongs to a micro-benchmark, which measures single
/// operations (rows) instead of steps. The second function takes its workload and its numbers of
/// steps and rows.
[[nodiscard]] bool is_bench(const results::PointData& point);
[[nodiscard]] bool is_bench(std::string_view workload, std::size_t steps, std::size_t rows);

[[nodiscard]] BenchReport report_bench(const results::RunData& run, const results::PointData& point,
                                       const results::CalibrationData& calibration);

}  // namespace isoscale::analysis::microbench
