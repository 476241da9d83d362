// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"
#include "results/field_visitors.hpp"
#include "results/point_tables.hpp"

namespace isoscale::results {

namespace {

constexpr std::int64_t unchecked = -1;

/// Returns the column of `key`, extended to the number of rows.
template <class T>
std::vector<T>& column_of(std::map<std::string, std::vector<T>>& columns, const std::string& key,
                          std::size_t rows, const T& absent) {
  const auto [place, added] = columns.try_emplace(key);
  if (added) place->second.assign(rows, absent);
  return place->second;
}

void put_keys(RowTable& table, const std::vector<RowData>& rows) {
  for (std::size_t at = 0; at < rows.size(); ++at) {
    for (const auto& [key, value] : rows[at].text) {
      if (!value.empty()) column_of(table.text, key, rows.size(), std::string{})[at] = value;
    }
    for (const auto& [key, value] : rows[at].number) {
      if (std::isnan(value)) continue;
      column_of(table.number, key, rows.size(), std::numeric_limits<double>::quiet_NaN())[at] =
          value;
    }
  }
}

void get_keys(const RowTable& table, std::vector<RowData>& rows) {
  for (const auto& [key, column] : table.text) {
    require(column.size() == rows.size(), "the columns of rows/text differ in length");
    for (std::size_t at = 0; at < rows.size(); ++at) {
      if (!column[at].empty()) rows[at].text.emplace(key, column[at]);
    }
  }
  for (const auto& [key, column] : table.number) {
    require(column.size() == rows.size(), "the columns of rows/number differ in length");
    for (std::size_t at = 0; at < rows.size(); ++at) {
      if (!std::isnan(column[at])) rows[at].number.emplace(key, column[at]);
    }
  }
}

void check_columns(const RowTable& t) {
  require_lengths({t.status.size(), t.reason.size(), t.wrong.size(), t.calls.size(), t.plays.size(),
                   t.ranks_begin.size() - 1, t.time_begin.size() - 1, t.call_time_begin.size() - 1},
                  "the columns of rows differ in length");
  require_offsets(t.ranks_begin, t.ranks.size(), "'ranks_begin' is out of order");
  require_offsets(t.time_begin, t.time.size(), "'time_begin' is out of order");
  require_offsets(t.call_time_begin, t.call_time.size(), "'call_time_begin' is out of order");
}

/// Returns the elements [begin[row], begin[row + 1]) of a column.
template <class T>
std::vector<T> part(const std::vector<T>& column, const std::vector<std::uint64_t>& begin,
                    std::size_t row) {
  return {column.begin() + static_cast<std::ptrdiff_t>(begin[row]),
          column.begin() + static_cast<std::ptrdiff_t>(begin[row + 1])};
}

/// Returns the times of row `at`, divided into plays.
std::vector<std::vector<double>> plays_of(const RowTable& table, std::size_t at,
                                          std::size_t width) {
  const std::vector<double> flat = part(table.time, table.time_begin, at);
  const bool fits = table.plays[at] == 0 ? flat.empty()
                                         : flat.size() / table.plays[at] == width &&
                                               flat.size() % table.plays[at] == 0 && width > 0;
  require(fits, "a row's times do not fit its plays and ranks");
  std::vector<std::vector<double>> times;
  for (auto play = flat.begin(); play != flat.end();) {
    const auto next = play + static_cast<std::ptrdiff_t>(width);
    times.emplace_back(play, next);
    play = next;
  }
  return times;
}

std::uint64_t room_for_texts(const std::vector<std::string>& column) {
  std::size_t longest = 1;
  for (const std::string& text : column) longest = std::max(longest, text.size());
  return column.size() * longest;
}

/// The value of a number that is not known.
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

RowTable to_table(const std::vector<RowData>& rows) {
  RowTable table{.ranks_begin = {0}, .time_begin = {0}, .call_time_begin = {0}};
  put_keys(table, rows);
  for (const RowData& row : rows) {
    table.ranks.insert(table.ranks.end(), row.ranks.begin(), row.ranks.end());
    table.ranks_begin.push_back(table.ranks.size());
    table.calls.push_back(row.calls);
    table.plays.push_back(row.times.size());
    for (const auto& play : row.times) {
      table.time.insert(table.time.end(), play.begin(), play.end());
    }
    table.time_begin.push_back(table.time.size());
    table.call_time.insert(table.call_time.end(), row.call_times.begin(), row.call_times.end());
    table.call_time_begin.push_back(table.call_time.size());
    table.status.push_back(static_cast<std::uint8_t>(row.status));
    table.reason.push_back(row.reason);
    table.wrong.push_back(row.wrong.value_or(unchecked));
  }
  return table;
}

std::vector<RowData> to_rows(const RowTable& table, int ranks) {
  require(!table.ranks_begin.empty() && !table.time_begin.empty() && !table.call_time_begin.empty(),
          "the columns of rows differ in length");
  check_columns(table);
  std::vector<RowData> rows(table.status.size());
  get_keys(table, rows);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    RowData& row = rows[at];
    row.ranks = part(table.ranks, table.ranks_begin, at);
    row.calls = table.calls[at];
    const std::size_t width =
        row.ranks.empty() ? static_cast<std::size_t>(std::max(ranks, 0)) : row.ranks.size();
    row.times = plays_of(table, at, width);
    row.call_times = part(table.call_time, table.call_time_begin, at);
    row.status = static_cast<PointStatus>(table.status[at]);
    row.reason = table.reason[at];
    require(table.wrong[at] >= unchecked, "a row has less than no wrong elements");
    if (table.wrong[at] != unchecked) row.wrong = table.wrong[at];
  }
  return rows;
}

std::uint64_t room_for(const RowTable& table) {
  constexpr std::uint64_t dataset = 4096;  ///< its header, attributes, and entry in its group
  constexpr std::uint64_t numbers_row = 64, number = 8;
  std::uint64_t bytes = (table.text.size() + table.number.size()) * dataset +
                        table.status.size() * (numbers_row + table.number.size() * number) +
                        (table.time.size() + table.call_time.size()) * number +
                        table.ranks.size() * number + room_for_texts(table.reason);
  for (const auto& [key, column] : table.text) bytes += room_for_texts(column);
  return bytes;
}

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
  std::size_t longest = 0;  // all texts of a column have the length of the longest
  for (const DeviceSeries& series : point.device_series) {
    longest = std::max({longest, series.device.size(), series.quantity.size(), series.unit.size()});
    bytes += 12 + series.time.size() * sample;
  }
  bytes += point.device_series.size() * 3 * longest;
  for (const std::string& text : point.injections) bytes += text.size() * point.injections.size();
  return bytes;
}

GemmTable to_table(const std::vector<GemmChoice>& choices) {
  GemmTable table;
  for (const GemmChoice& choice : choices) {
    table.shape.push_back(choice.shape);
    table.algorithm.push_back(choice.algorithm);
    table.workspace.push_back(choice.workspace);
    table.time.push_back(choice.time.value_or(unknown));
    table.candidates.push_back(choice.candidates);
    table.arithmetic.push_back(choice.arithmetic);
  }
  return table;
}

std::vector<GemmChoice> to_choices(const GemmTable& t) {
  require_lengths(
      {t.shape.size(), t.algorithm.size(), t.workspace.size(), t.time.size(), t.candidates.size()},
      "the columns of gemm_choices differ in length");
  const bool knows_arithmetic = !t.arithmetic.empty();
  if (knows_arithmetic) {
    require_lengths({t.arithmetic.size(), t.shape.size()},
                    "the columns of gemm_choices differ in length");
  }
  std::vector<GemmChoice> choices;
  for (std::size_t row = 0; row < t.shape.size(); ++row) {
    choices.push_back({.shape = t.shape[row],
                       .algorithm = t.algorithm[row],
                       .workspace = t.workspace[row],
                       .time = known(t.time[row]),
                       .candidates = t.candidates[row],
                       .arithmetic = knows_arithmetic ? t.arithmetic[row] : ""});
  }
  return choices;
}

std::vector<GemmChoice> choices_of_run(const RunData& run, const std::string& file) {
  std::vector<GemmChoice> choices;
  std::set<std::string_view> shapes;
  for (const PointData& point : run.points) {
    for (const GemmChoice& choice : point.gemm_choices) {
      if (shapes.insert(choice.shape).second) choices.push_back(choice);
    }
  }
  if (!choices.empty()) return choices;
  throw base::UsageError(
      fmt::format("{}: holds no choice of GEMM algorithms; give a run that was measured on a GPU "
                  "(--device cuda)",
                  base::printable(file)));
}

CommunicatorTable to_table(const std::vector<CommunicatorTime>& times) {
  CommunicatorTable table;
  for (const CommunicatorTime& time : times) {
    table.name.push_back(time.name);
    table.ranks.push_back(time.ranks);
    table.creation.push_back(time.creation);
    table.first_call.push_back(time.first_call.value_or(unknown));
  }
  return table;
}

std::vector<CommunicatorTime> to_communicators(const CommunicatorTable& t) {
  require_lengths({t.name.size(), t.ranks.size(), t.creation.size(), t.first_call.size()},
                  "the columns of communicators differ in length");
  std::vector<CommunicatorTime> times;
  for (std::size_t row = 0; row < t.name.size(); ++row) {
    times.push_back({.name = t.name[row],
                     .ranks = t.ranks[row],
                     .creation = t.creation[row],
                     .first_call = known(t.first_call[row])});
  }
  return times;
}

}  // namespace isoscale::results
