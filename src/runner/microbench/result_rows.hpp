// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "results/records/fields.hpp"
#include "results/records/run_data.hpp"
#include "runner/microbench/benchmark_case.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// Makes the result rows of a micro-benchmark from the reports of ranks, classifies them by the
/// links between these ranks, and judges them. All functions are pure.
namespace isoscale::runner::microbench {

/// The state of a rank's GPU while a case was timed; absent values are unknown.
struct GpuState {
  std::optional<double> sm_clock{};                ///< Hz, median
  std::optional<std::int64_t> throttle_reasons{};  ///< bits of all reasons seen, without idleness

  bool operator==(const GpuState&) const = default;
};
[[nodiscard]] GpuState gpu_state_of(std::span<const results::DeviceSeries> sampled);

/// The results of one case on one rank, which rank 0 gathers.
struct RankReport {
  std::optional<std::int64_t> wrong{};  ///< wrong elements; absent: nothing to compare
  std::vector<double> plays{};          ///< seconds of each play
  std::vector<StreamTime> stream_times{};
  GpuState gpu{};

  bool operator==(const RankReport&) const = default;
};

}  // namespace isoscale::runner::microbench

namespace isoscale::results {

template <>
inline constexpr auto fields_of<runner::microbench::StreamTime> = std::tuple{
    field("stream", &runner::microbench::StreamTime::stream, "1", "stream"),
    field("seconds", &runner::microbench::StreamTime::seconds, "s", "duration of a pass")};

template <>
inline constexpr auto fields_of<runner::microbench::RankReport> = std::tuple{
    attribute("wrong", &runner::microbench::RankReport::wrong, "wrong elements"),
    field("plays", &runner::microbench::RankReport::plays, "s", "duration of each play"),
    table("streams", &runner::microbench::RankReport::stream_times, "streams"),
    attribute("sm_clock",
              path(&runner::microbench::RankReport::gpu, &runner::microbench::GpuState::sm_clock),
              "Hz, median"),
    attribute(
        "throttle_reasons",
        path(&runner::microbench::RankReport::gpu, &runner::microbench::GpuState::throttle_reasons),
        "bits")};

}  // namespace isoscale::results

namespace isoscale::runner::microbench {

/// Returns the row without times, with a status and its reason.
[[nodiscard]] results::RowData row_of(const workloads::RowSpec& spec, results::PointStatus status,
                                      std::string reason = "");

/// Returns the row with the times of its ranks (of one stream if the row is about one) and the
/// number of wrong elements. `reports` are by rank of the point; `record` holds what all ranks have
/// in common.
[[nodiscard]] results::RowData row_of(const workloads::RowSpec& spec, const workloads::Case& one,
                                      const CaseRecord& record,
                                      std::span<const RankReport> reports);

/// Stores the sum of the wrong elements that the ranks of a row found. If it is not zero, the row
/// has failed.
void note_wrong(const workloads::RowSpec& spec, std::span<const RankReport> reports,
                results::RowData& row);

/// Describes a row for people: "all_reduce f32 1.00 MiB".
[[nodiscard]] std::string title_of(const workloads::RowSpec& row);

/// Classifies the links between ranks. `facts` are those of all ranks of a launch, by world rank.
/// Only links of the same class are compared.
class LinkClasses {
 public:
  explicit LinkClasses(std::span<const results::RankFacts> facts);

  /// Returns the class of the link between two ranks. On one node it is "same node", or "same node,
  /// NVLink" or "same node, PCIe" if the link between their GPUs is known. Between nodes it is
  /// "other node, NVLink domain" (GPUs of one clique), "other node, same rail" (GPUs in the same
  /// place of their nodes) or "other node".
  [[nodiscard]] std::string of_pair(int a, int b) const;
  /// Returns the class of a group of ranks that communicate: "one node" or "several nodes".
  [[nodiscard]] std::string of_group(std::span<const int> ranks) const;

 private:
  [[nodiscard]] const results::RankFacts& facts(int rank) const {
    return facts_[static_cast<std::size_t>(rank)];
  }

  std::span<const results::RankFacts> facts_;  ///< not owned
  std::vector<int> rail_;                      ///< place of a rank's GPU on its node; -1 = unknown
};

/// Stores the class of each row of `point` that communicates, as the text "class".
void classify_rows(const LinkClasses& classes, results::PointData& point);

/// The names of the ranks of a point, see rank_name.
using RankNames = std::vector<std::string>;

/// Returns "rank 3 (node7)"; the number is the rank in the launch.
[[nodiscard]] std::string rank_name(int world_rank, const std::string& host);

/// Returns the bandwidth of a row of p2p: the bytes of a call divided by the median over all plays
/// of a call's time on the slowest rank. Absent if the row has no times.
[[nodiscard]] std::optional<units::BytesPerSecond> median_bandwidth(const results::RowData& row);

/// Fails each row with the bandwidth of p2p in one direction if its median is below `least`. The
/// reason names both ranks and the bandwidth.
void judge_bandwidth(std::vector<results::RowData>& rows, units::BytesPerSecond least,
                     const RankNames& names);

/// Returns the reason of one failed row (the slowest) and the number of other failed rows; "" if
/// none failed.
[[nodiscard]] std::string reason_of_failed(std::span<const results::RowData> rows);

}  // namespace isoscale::runner::microbench
