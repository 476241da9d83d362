// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/microbench_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/text.hpp"
#include "calibration/fit_calibration.hpp"

namespace isoscale::analysis::render {
namespace {

using microbench::ClassReport;
using microbench::RowReport;

/// Returns the title of a table: "all_reduce among 4 on tp, ring, f32, sum, in place".
std::string collective_title(const RowReport& row) {
  std::string text = collective_name(row);
  for (const char* const key : {"dtype", "reduction"}) {
    if (const std::string part = text_of(*row.data, key); !part.empty()) text += ", " + part;
  }
  return text + (text_of(*row.data, "in_place") == "yes" ? ", in place" : "");
}

std::string gemm_title(const RowReport& report) {
  const results::RowData& row = *report.data;
  const std::string cache = text_of(row, "cache"), sums = text_of(row, "fp8_accumulate");
  return fmt::format("gemm, {}{}{}", text_of(row, "dtype"),
                     cache.empty() ? "" : ", " + cache + " caches",
                     sums.empty() ? "" : fmt::format(", fp8_accumulate {}", sums));
}

std::string memory_title(const RowReport& row) {
  const std::string together = text_of(*row.data, "together");
  if (together == "all") return "memory, all ranks at once";
  return together == "one" ? "memory, one rank alone" : "memory";
}

DocumentTable overlap_table(const microbench::BenchReport& bench) {
  DocumentTable table = table_of<microbench::OverlapReport>(
      overlap_metrics(), pointers_to(bench.overlaps),
      "collective dtype bytes m n k gemm_alone collective_alone together gemm_slowdown "
      "collective_slowdown hidden_shown hidden_interval");
  table.title = "overlap: a multiplication and a collective, alone and together";
  for (const microbench::OverlapReport& at : bench.overlaps) {
    table.reasons.push_back(at.failure.empty() ? at.why_unknown : at.failure);
  }
  return table;
}

constexpr std::size_t largest_matrix = 16;  ///< ranks; a larger matrix is not shown

/// Returns a number with at least three significant digits, so that slow links do not show as
/// zeros: "0.0117", "5.03", "1234".
std::string three_digits(double value) {
  return value < 99.95 ? fmt::format("{:#.3g}", value) : fmt::format("{:.0f}", value);
}

/// A quantity that is measured for each pair of ranks. All cells of its matrix have one unit.
struct Quantity {
  const char* title;
  std::optional<double> microbench::PairReport::*value;
  double unit;  ///< the cells' unit in SI units, such as 1e-6 for us
};

/// Returns a matrix of the pairs of ranks for each measured quantity, but none for over 16 ranks.
std::vector<DocumentTable> matrices(const PointReport& point) {
  constexpr Quantity quantities[] = {
      {"one-way latency in us, from (row) to (column)", &microbench::PairReport::latency, 1e-6},
      {"bandwidth in GB/s, from (row) to (column)", &microbench::PairReport::bandwidth, 1e9},
      {"bandwidth of both directions at once in GB/s", &microbench::PairReport::bidirectional,
       1e9}};
  std::set<int> ranks;
  std::map<std::pair<int, int>, const microbench::PairReport*> pairs;
  for (const microbench::PairReport& pair : point.bench->pairs) {
    const int src = world_rank(*point.data, pair.src), dst = world_rank(*point.data, pair.dst);
    ranks.insert({src, dst});
    pairs[{src, dst}] = &pair;
  }
  std::vector<DocumentTable> tables;
  for (const Quantity& quantity : quantities) {
    const bool measured = std::ranges::any_of(
        point.bench->pairs, [&](const auto& pair) { return (pair.*quantity.value).has_value(); });
    if (!measured || ranks.size() > largest_matrix) continue;
    DocumentTable& table = tables.emplace_back(DocumentTable{.title = quantity.title});
    for (const int src : ranks) {
      std::vector<Cell> cells{{"rank", Json(src)}};
      for (const int dst : ranks) {
        const auto pair = pairs.find({src, dst});
        const auto value = pair == pairs.end() ? std::nullopt : pair->second->*quantity.value;
        const bool failed = pair != pairs.end() && !pair->second->failure.empty();
        cells.push_back(
            {std::to_string(dst), std::string{src == dst ? ""
                                              : value    ? three_digits(*value / quantity.unit)
                                              : failed   ? "failed"
                                                         : undefined}});
      }
      add_row(table, std::move(cells));
    }
  }
  return tables;
}

DocumentTable class_table(const microbench::BenchReport& bench) {
  std::vector<Value> shares;
  const auto fastest = bench.classes.front().bandwidth;
  for (const ClassReport& at : bench.classes) {
    const bool known = fastest && at.bandwidth;
    shares.push_back(value_json(known ? std::optional{*at.bandwidth / *fastest} : std::nullopt));
  }
  DocumentTable table =
      table_of<ClassReport>(class_metrics(), pointers_to(bench.classes),
                            "class pairs latency bandwidth lowest highest bidirectional share",
                            {{{"share", "of the fastest", Unit::share}, shares}});
  table.title = "link classes: medians over ordered pairs, the fastest first";
  return table;
}

/// True for a row of a pattern in which many ranks communicate at once, not one pair.
bool is_of_many_ranks(const RowReport* row) {
  const std::string kind = text_of(*row->data, "kind");
  return kind != "latency" && kind != "bandwidth" && kind != "bidirectional";
}

}  // namespace

Metrics<ClassReport> class_metrics() {
  using enum Unit;
  using C = ClassReport;
  static constexpr Metric<ClassReport> all[] = {
      {"class", "class", text,
       [](const ClassReport& at) -> Value {
         return at.name.empty() ? std::string{undefined} : at.name;
       }},
      {"pairs", "pairs", count, member<&C::pairs>},
      {"latency", "latency", seconds, member<&C::latency>},
      {"bandwidth", "bandwidth", bandwidth, member<&C::bandwidth>},
      {"lowest", "lowest", bandwidth, member<&C::lowest>},
      {"highest", "highest", bandwidth, member<&C::highest>},
      {"bidirectional", "both directions", bandwidth, member<&C::bidirectional>},
  };
  return all;
}

std::vector<const RowReport*> rows_of(const PointReport& point, std::string_view op) {
  std::vector<const RowReport*> rows;
  if (point.bench) rows = pointers_to(point.bench->rows);
  std::erase_if(rows, [op](const RowReport* row) { return text_of(*row->data, "op") != op; });
  return rows;
}

DocumentTable row_table(const std::vector<const RowReport*>& rows, std::string title,
                        std::string_view keys) {
  DocumentTable table = table_of<RowReport>(row_metrics(), rows, keys);
  table.title = std::move(title);
  for (const RowReport* const row : rows) table.reasons.push_back(row_excuse(*row));
  return table;
}

std::vector<const RowReport*> collective_rows(const PointReport& point) {
  std::vector<const RowReport*> rows;
  if (point.bench) rows = pointers_to(point.bench->rows);
  std::erase_if(rows, [](const RowReport* row) {
    return !calibration::is_collective(text_of(*row->data, "op"));
  });
  return rows;
}

std::string collective_name(const RowReport& row) {
  const auto part = [&row](const char* key, std::string_view before) {
    const std::string text = text_of(*row.data, key);
    return text.empty() ? "" : fmt::format("{}{}", before, text);
  };
  const std::string groups = part("groups", "");
  const double members = number_of(*row.data, "members").value_or(0);
  std::string text = part("op", "");
  if (members > 0) text += fmt::format(" among {:.0f}", members);
  text += part("axis", " on ");
  if (groups == "one") text += ", one group alone";
  if (groups == "all" && part("axis", "") != "world") text += ", all groups at once";
  for (const char* const key : {"implementation", "algorithm", "protocol"}) text += part(key, ", ");
  return text + part("registration", ", registration ");
}

std::string bench_title(const PointReport& point) {
  const results::PointData& data = *point.data;
  const std::string mesh = mesh::to_string(data.mesh);
  std::vector<std::string> parts{data.workload, data.dtype, base::counted(data.ranks, "rank"),
                                 mesh == "1" ? "" : mesh, data.placement};
  std::erase(parts, "");
  return escape(base::listed(parts));
}

std::vector<DocumentTable> bench_tables(const PointReport& point) {
  std::vector<DocumentTable> tables;
  if (!point.bench) return tables;
  const auto add = [&](std::vector<DocumentTable> more) {
    std::ranges::move(more, std::back_inserter(tables));
  };
  for (const auto& [title, rows] : grouped(rows_of(point, "gemm"), gemm_title)) {
    tables.push_back(row_table(
        rows, title, "m n k batch layout | time interval flops of_ceiling of_peak origin"));
  }
  for (const auto& [title, rows] : grouped(collective_rows(point), collective_title)) {
    tables.push_back(
        row_table(rows, title, "bytes | time interval least p99 algbw busbw wrong estimate"));
  }
  if (!point.bench->pairs.empty()) {
    add(matrices(point));
    tables.push_back(class_table(*point.bench));
  }
  std::vector<const RowReport*> patterns = rows_of(point, "p2p");
  std::erase_if(patterns, std::not_fn(is_of_many_ranks));
  tables.push_back(
      row_table(patterns, "ranks at once", "kind class bytes | time interval bandwidth"));
  for (const auto& [title, rows] : grouped(rows_of(point, "memory"), memory_title)) {
    tables.push_back(row_table(rows, title, "kind numa bytes | time interval bandwidth of_peak"));
  }
  tables.push_back(overlap_table(*point.bench));
  tables.push_back(infer_part_table(point));
  add(serve_tables(point));
  return tables;
}

}  // namespace isoscale::analysis::render
