// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/run_data.hpp"
#include "runner/bench_case.hpp"
#include "workloads/bench/bench.hpp"

/// From what the ranks say of a case to its rows; pure.
namespace isoscale::runner {

/// The state of a rank's GPU while a case was timed; absent: it did not tell.
struct GpuState {
  std::optional<double> sm_clock{};                 ///< Hz, median
  std::optional<std::uint64_t> throttle_reasons{};  ///< bits that were seen, without idleness

  bool operator==(const GpuState&) const = default;
};
[[nodiscard]] GpuState gpu_state_of(std::span<const machine::SampledSeries> sampled);

/// What one rank says of a case.
struct RankReport {
  std::optional<std::uint64_t> wrong{};  ///< elements; absent: this rank had nothing to compare
  std::vector<double> plays{};           ///< seconds
  std::vector<std::vector<double>> stream_times{};  ///< see CaseRecord
  GpuState gpu{};

  bool operator==(const RankReport&) const = default;
};
[[nodiscard]] std::vector<double> pack(const RankReport& report);
[[nodiscard]] RankReport unpack(std::span<const std::byte> packed);

/// The row without times, for one that is not measured.
[[nodiscard]] results::RowData row_of(const workloads::RowSpec& spec);
/// The same, and why.
[[nodiscard]] results::RowData row_of(const workloads::RowSpec& spec, results::PointStatus status,
                                      std::string reason);

/// The row with the times of its ranks, or of its stream on them, and what they found wrong.
/// `reports` are by rank of the point; `record` says what all ranks know.
[[nodiscard]] results::RowData row_of(const workloads::RowSpec& spec, const workloads::Case& one,
                                      const CaseRecord& record,
                                      std::span<const RankReport> reports);

/// Adds up what the ranks of a row found wrong; a row with wrong elements has failed.
void note_wrong(const workloads::RowSpec& spec, std::span<const RankReport> reports,
                results::RowData& row);

/// What a row is about, for people: "all_reduce f32 1.00 MiB".
[[nodiscard]] std::string title_of(const workloads::RowSpec& row);

}  // namespace isoscale::runner
