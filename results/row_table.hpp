// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/run_data.hpp"

/// The rows of a micro-benchmark as columns, the form that the file has them in.
namespace isoscale::results {

/// Ranks [ranks_begin[i], ranks_begin[i+1]), times and call times likewise are those of row i; its
/// times lie play after play.
struct RowTable {
  std::map<std::string, std::vector<std::string>> text{};  ///< by key; "" = absent
  std::map<std::string, std::vector<double>> number{};     ///< by key; NaN = absent
  std::vector<std::uint64_t> ranks_begin{};
  std::vector<std::int32_t> ranks{};
  std::vector<std::int64_t> calls{};
  std::vector<std::uint64_t> plays{}, time_begin{};
  std::vector<double> time{};
  std::vector<std::uint64_t> call_time_begin{};
  std::vector<double> call_time{};
  std::vector<std::uint8_t> status{};
  std::vector<std::string> reason{};
  std::vector<std::int64_t> wrong{};  ///< -1 = not checked
};

[[nodiscard]] RowTable to_table(const std::vector<RowData>& rows);
/// `ranks`: of the point. Throws base::Error when the columns do not fit together.
[[nodiscard]] std::vector<RowData> to_rows(const RowTable& table, int ranks);

/// Bytes that the columns need at most, their structure by a generous guess.
[[nodiscard]] std::uint64_t room_for(const RowTable& table);

}  // namespace isoscale::results
