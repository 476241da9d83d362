// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/render/csv_cells.hpp"
#include "analysis/render/text_table.hpp"
#include "analysis/report.hpp"

/// What the rows of workload serve say: rates, replicas and requests.
namespace isoscale::analysis {

/// Of one point: its rates in ascending order, and the replicas at the rate whose requests were
/// kept.
[[nodiscard]] std::vector<TitledTable> serve_tables(const PointReport& point);
/// What the columns mean; "" for a run without such rows.
[[nodiscard]] std::string serve_key(const RunReport& report);

/// Of one row of the workload. Rates have latency, ttft, tpot and queueing as objects with median,
/// p90, p99 and max, seconds; what is undefined is null.
[[nodiscard]] nlohmann::ordered_json serve_json(const results::RowData& row);
/// Of any row; `row` may be null.
[[nodiscard]] std::vector<CsvCell> serve_cells(const results::RowData* row);

}  // namespace isoscale::analysis
