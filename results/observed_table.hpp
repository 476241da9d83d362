// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/run_data.hpp"

/// What was seen beside the traces of a point, as columns: op sums, solo times, device series.
namespace isoscale::results {

/// One row per traced step; 2-D columns have a column per rank.
struct OpSumTable {
  std::vector<std::uint32_t> step;
  std::vector<std::vector<double>> gemm, other_compute, copies, communication;
};

/// Ops [op_begin[i], op_begin[i+1]) are those of row i.
struct SoloTable {
  std::vector<std::int32_t> rank;
  std::vector<std::uint64_t> op_begin;
  std::vector<std::int64_t> time;
};

/// Samples [sample_begin[i], sample_begin[i+1]) are those of row i.
struct SeriesTable {
  std::vector<std::int32_t> rank;
  std::vector<std::string> device, quantity, unit;
  std::vector<std::uint64_t> sample_begin;
  std::vector<double> time, value;
};

[[nodiscard]] OpSumTable to_table(const std::vector<OpSums>& sums);
[[nodiscard]] SoloTable to_table(const std::vector<SoloTimes>& times);
[[nodiscard]] SeriesTable to_table(const std::vector<DeviceSeries>& series);

/// Throw base::Error when the columns do not fit together.
[[nodiscard]] std::vector<OpSums> to_op_sums(const OpSumTable& table);
[[nodiscard]] std::vector<SoloTimes> to_solo_times(const SoloTable& table);
[[nodiscard]] std::vector<DeviceSeries> to_device_series(const SeriesTable& table);

/// Bytes that what was seen of a point needs at most.
[[nodiscard]] std::uint64_t room_for_observed(const PointData& point);

}  // namespace isoscale::results
