// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/row_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "results/columns.hpp"

namespace isoscale::results {
namespace {

constexpr std::int64_t unchecked = -1;

/// The column of `key`, as long as there are rows.
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

template <class T>
std::vector<T> part(const std::vector<T>& values, const std::vector<std::uint64_t>& begin,
                    std::size_t at) {
  return {values.begin() + static_cast<std::ptrdiff_t>(begin[at]),
          values.begin() + static_cast<std::ptrdiff_t>(begin[at + 1])};
}

/// The times of row `at`, cut into plays.
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

}  // namespace isoscale::results
