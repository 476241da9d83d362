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
#include "runner/microbench/measure_case.hpp"
#include "units/quantity.hpp"
#include "workloads/api/workload.hpp"

/// Makes the result rows of a micro-benchmark from what ranks report, says over which kind of link
/// the ranks of a row communicate, and judges rows. All functions are pure.
namespace isoscale::runner::microbench {

/// The report about one case that each rank sends to rank 0.
struct RankReport {
  /// Number of wrong elements; absent: there was nothing to compare.
  std::optional<std::int64_t> wrong{};
  std::vector<double> plays{};  ///< seconds of each play
  std::vector<StreamTime> stream_times{};
  /// The median clock of the rank's GPU in Hz, and the bits of all reasons that limited it, except
  /// the bit of the reason "idle"; absent if they are unknown.
  std::optional<double> sm_clock{};
  std::optional<std::int64_t> throttle_reasons{};

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
    attribute("sm_clock", &runner::microbench::RankReport::sm_clock, "Hz, median"),
    attribute("throttle_reasons", &runner::microbench::RankReport::throttle_reasons, "bits")};

}  // namespace isoscale::results

namespace isoscale::runner::microbench {

/// Stores in a report the state of the GPU while a case was timed.
void note_gpu(std::span<const results::DeviceSeries> sampled, RankReport& report);

/// Returns a result row without times, which has this status and reason.
[[nodiscard]] results::RowData row_of(const workloads::RowSpec& spec, results::PointStatus status,
                                      std::string reason = "");

/// Returns a result row with the times of its ranks, or of one stream if the row is about a stream,
/// and with the number of wrong elements. `reports` are indexed by rank of the point. `record` is
/// that of this rank; only members that are the same on all ranks are used.
[[nodiscard]] results::RowData row_of(const workloads::RowSpec& spec, const workloads::Case& one,
                                      const CaseRecord& record,
                                      std::span<const RankReport> reports);

/// Stores in a row the number of wrong elements that all its ranks found together. If it is not
/// zero, the row has failed.
void note_wrong(const workloads::RowSpec& spec, std::span<const RankReport> reports,
                results::RowData& row);

/// Returns a text that identifies a row: "all_reduce f32 1.00 MiB".
[[nodiscard]] std::string title_of(const workloads::RowSpec& row);

/// Divides the links between ranks into classes. Only links of the same class are compared with
/// each other. `facts` are those of all ranks of the launch, by world rank.
class LinkClasses {
 public:
  explicit LinkClasses(std::span<const results::RankFacts> facts);

  /// Returns the class of the link between two ranks of the launch:
  /// - on the same node, "same node, NVLink" or "same node, PCIe"; "same node" if they share a GPU,
  ///   or if the link between their GPUs is unknown
  /// - on two nodes, "other node, NVLink domain" if their GPUs are in the same clique of an NVLink
  ///   domain, "other node, same rail" if their GPUs have the same index among the GPUs that are
  ///   used on their nodes, else "other node"
  [[nodiscard]] std::string of_pair(int a, int b) const;
  /// Returns the class of a group of ranks that communicate: "one node" or "several nodes".
  [[nodiscard]] std::string of_group(std::span<const int> ranks) const;

 private:
  [[nodiscard]] const results::RankFacts& facts(int rank) const {
    return facts_[static_cast<std::size_t>(rank)];
  }

  std::span<const results::RankFacts> facts_;  ///< not owned
  std::vector<int> rail_;  ///< number of each rank's GPU among those used on its node; -1: unknown
};

/// Stores in each row of `point` that communicates the class of the row's links, under the key
/// "class": "several nodes" if one of the row's groups of ranks is on several nodes.
void classify_rows(const LinkClasses& classes, results::PointData& point);

/// Returns "rank 3 (node7)"; 3 is the rank in the launch.
[[nodiscard]] std::string rank_name(int world_rank, const std::string& host);

/// Returns the bandwidth of a row of the workload p2p: the bytes of a call divided by the time of a
/// call. This time is the median over all plays of the time on the slowest rank. Absent if the row
/// has no times or no bytes, or if the median is 0.
[[nodiscard]] std::optional<units::BytesPerSecond> median_bandwidth(const results::RowData& row);

/// Judges the rows of the workload p2p that have traffic in one direction and the status ok. If the
/// median bandwidth of a row is below `least`, its status becomes failed. The reason gives the
/// bandwidth and both ranks, by their entries in `names`.
void judge_bandwidth(std::vector<results::RowData>& rows, units::BytesPerSecond least,
                     const std::vector<std::string>& names);

/// Returns the reason of the failed row with the least bandwidth, and how many other rows failed;
/// "" if none failed. The bandwidth of a row without times counts as 0.
[[nodiscard]] std::string reason_of_failed(std::span<const results::RowData> rows);

}  // namespace isoscale::runner::microbench
