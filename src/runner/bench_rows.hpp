// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/world.hpp"
#include "results/run_data.hpp"
#include "runner/bench_case.hpp"
#include "workloads/bench/bench.hpp"

/// From what ranks recorded of a case to the rows of a run file.
namespace isoscale::runner {

/// For people: "all_reduce f32 4 MiB".
[[nodiscard]] std::string title_of(const workloads::RowSpec& row);

/// A row without times.
[[nodiscard]] results::RowData row_of(const workloads::RowSpec& spec);
/// A row that has none because of `reason`.
[[nodiscard]] results::RowData row_of(const workloads::RowSpec& spec, results::PointStatus status,
                                      std::string reason);

/// What one rank says of a case.
struct RankRecord {
  std::optional<double> wrong;  ///< elements; absent: not compared
  std::vector<double> plays;    ///< seconds
};

/// Collective over `point`: every rank's, by rank, on rank 0; empty elsewhere.
[[nodiscard]] std::vector<RankRecord> gather_records(const comm::Communicator& point,
                                                     const RankRecord& mine);

/// The row of a case that was played; failed when elements were wrong.
[[nodiscard]] results::RowData measured_row(const workloads::RowSpec& spec,
                                            const workloads::Case& one, const CaseRecord& record,
                                            const std::vector<RankRecord>& of_rank);

}  // namespace isoscale::runner
