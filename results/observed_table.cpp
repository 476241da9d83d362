// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/observed_table.hpp"

#include <algorithm>
#include <cstddef>

#include "results/columns.hpp"

namespace isoscale::results {
namespace {

/// Elements [begin[row], begin[row + 1]) of a column.
template <class T>
std::vector<T> part(const std::vector<T>& column, const std::vector<std::uint64_t>& begin,
                    std::size_t row) {
  return {column.begin() + static_cast<std::ptrdiff_t>(begin[row]),
          column.begin() + static_cast<std::ptrdiff_t>(begin[row + 1])};
}

}  // namespace

OpSumTable to_table(const std::vector<OpSums>& sums) {
  OpSumTable table;
  for (const OpSums& row : sums) {
    table.step.push_back(row.step);
    table.gemm.push_back(row.gemm);
    table.other_compute.push_back(row.other_compute);
    table.copies.push_back(row.copies);
    table.communication.push_back(row.communication);
  }
  return table;
}

std::vector<OpSums> to_op_sums(const OpSumTable& t) {
  require_lengths({t.step.size(), t.gemm.size(), t.other_compute.size(), t.copies.size(),
                   t.communication.size()},
                  "the columns of op_sums differ in length");
  std::vector<OpSums> sums;
  for (std::size_t row = 0; row < t.step.size(); ++row) {
    sums.push_back({.step = t.step[row],
                    .gemm = t.gemm[row],
                    .other_compute = t.other_compute[row],
                    .copies = t.copies[row],
                    .communication = t.communication[row]});
  }
  return sums;
}

SoloTable to_table(const std::vector<SoloTimes>& times) {
  SoloTable table;
  table.op_begin.push_back(0);
  for (const SoloTimes& row : times) {
    table.rank.push_back(row.rank);
    for (const units::Nanoseconds time : row.op) table.time.push_back(time.value());
    table.op_begin.push_back(table.time.size());
  }
  return table;
}

std::vector<SoloTimes> to_solo_times(const SoloTable& t) {
  require_lengths({t.rank.size() + 1, t.op_begin.size()},
                  "the columns of solo_times differ in length");
  require_offsets(t.op_begin, t.time.size(), "op_begin of solo_times does not fit its ops");
  std::vector<SoloTimes> times;
  for (std::size_t row = 0; row < t.rank.size(); ++row) {
    SoloTimes& solo = times.emplace_back(SoloTimes{.rank = t.rank[row]});
    for (const std::int64_t time : part(t.time, t.op_begin, row)) solo.op.emplace_back(time);
  }
  return times;
}

SeriesTable to_table(const std::vector<DeviceSeries>& series) {
  SeriesTable table;
  table.sample_begin.push_back(0);
  for (const DeviceSeries& row : series) {
    table.rank.push_back(row.rank);
    table.device.push_back(row.device);
    table.quantity.push_back(row.quantity);
    table.unit.push_back(row.unit);
    table.time.insert(table.time.end(), row.time.begin(), row.time.end());
    table.value.insert(table.value.end(), row.value.begin(), row.value.end());
    table.sample_begin.push_back(table.time.size());
  }
  return table;
}

std::vector<DeviceSeries> to_device_series(const SeriesTable& t) {
  require_lengths({t.rank.size(), t.device.size(), t.quantity.size(), t.unit.size(),
                   t.sample_begin.empty() ? std::size_t{1} : t.sample_begin.size() - 1},
                  "the columns of device_series differ in length");
  require_lengths({t.time.size(), t.value.size()}, "device_series has times without values");
  require_offsets(t.sample_begin, t.time.size(), "sample_begin of device_series is wrong");
  std::vector<DeviceSeries> series;
  for (std::size_t row = 0; row < t.rank.size(); ++row) {
    series.push_back({.rank = t.rank[row],
                      .device = t.device[row],
                      .quantity = t.quantity[row],
                      .unit = t.unit[row],
                      .time = part(t.time, t.sample_begin, row),
                      .value = part(t.value, t.sample_begin, row)});
  }
  return series;
}

std::uint64_t room_for_observed(const PointData& point) {
  constexpr std::uint64_t sums_of_rank = 32, sample = 16, structure = 16384;
  std::uint64_t bytes = structure;
  for (const OpSums& sums : point.op_sums) bytes += 4 + sums.gemm.size() * sums_of_rank;
  for (const SoloTimes& solo : point.solo_times)
    bytes += 12 + solo.op.size() * sizeof(std::int64_t);
  std::size_t longest = 0;  // texts of a column are as long as the longest of them
  for (const DeviceSeries& series : point.device_series) {
    longest = std::max({longest, series.device.size(), series.quantity.size(), series.unit.size()});
    bytes += 12 + series.time.size() * sample;
  }
  bytes += point.device_series.size() * 3 * longest;
  for (const std::string& text : point.injections) bytes += text.size() * point.injections.size();
  return bytes;
}

}  // namespace isoscale::results
