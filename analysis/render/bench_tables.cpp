// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/bench_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/render/cells.hpp"
#include "analysis/render/inference.hpp"
#include "analysis/render/text.hpp"
#include "base/text.hpp"
#include "calibration/calibration.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

auto names(const CollectiveGroup& group) {
  return std::tie(group.op, group.axis, group.groups, group.implementation, group.algorithm,
                  group.protocol, group.registration, group.members);
}

CollectiveGroup group_of(const results::RowData& row) {
  const auto text = [&](const char* key) { return text_of(row, key); };
  return {.op = text("op"),
          .axis = text("axis"),
          .groups = text("groups"),
          .implementation = text("implementation"),
          .algorithm = text("algorithm"),
          .protocol = text("protocol"),
          .registration = text("registration"),
          .members = number_of(row, "members").value_or(0),
          .sizes = {}};
}

/// Returns the key that the out-of-place and the in-place row of one size share.
auto size_key(const RowReport& row) {
  const auto number = [&](const char* key) { return number_of(*row.data, key).value_or(-1); };
  return std::tuple{number("bytes"), number("count"), number("root"), text_of(*row.data, "dtype"),
                    text_of(*row.data, "reduction")};
}

const RowReport*& place_of(PlacePair& pair, const RowReport& row) {
  return text_of(*row.data, "in_place") == "yes" ? pair.in_place : pair.out_of_place;
}

std::string wrong_cell(const PlacePair& pair) {
  std::int64_t wrong = 0;
  bool checked = false;
  for (const RowReport* const row : {pair.out_of_place, pair.in_place}) {
    if (row == nullptr || !row->data->wrong) continue;
    checked = true;
    wrong += *row->data->wrong;
  }
  return checked ? std::to_string(wrong) : std::string{undefined};
}

bool differs(const CollectiveGroup& group, const char* key) {
  const std::string first = text_of(*group.sizes.front().any().data, key);
  return std::ranges::any_of(
      group.sizes, [&](const PlacePair& pair) { return text_of(*pair.any().data, key) != first; });
}

TitledTable collective_table(const CollectiveGroup& group) {
  const bool typed = differs(group, "dtype"), reduced = differs(group, "reduction");
  const bool estimated = std::ranges::any_of(group.sizes, [](const PlacePair& pair) {
    return number_of(*pair.any().data, "estimate").has_value();
  });
  TitledTable table{.title = group_title(group), .columns = {{"size"}}, .rows = {}};
  const auto& first = *group.sizes.front().any().data;
  if (!typed) table.title += ", " + escape(text_of(first, "dtype"));
  if (!reduced && !text_of(first, "reduction").empty()) {
    table.title += ", " + escape(text_of(first, "reduction"));
  }
  if (typed) table.columns.push_back({"type", Align::left});
  if (reduced) table.columns.push_back({"reduction", Align::left});
  for (const char* heading :
       {"time", "±95%", "min", "p99", "algbw", "busbw", "in place", "±95%", "busbw", "wrong"}) {
    table.columns.push_back({heading});
  }
  if (estimated) table.columns.push_back({"estimate"});
  for (const PlacePair& pair : group.sizes) {
    const results::RowData& data = *pair.any().data;
    Row row{.cells = {size_cell(number_of(data, "bytes"))}, .tail = ""};
    if (typed) row.cells.push_back(escape(text_of(data, "dtype")));
    if (reduced) row.cells.push_back(escape(text_of(data, "reduction")));
    if (const std::string why = row_excuse(pair.any());
        !why.empty() && !has_rates(*pair.any().data)) {
      row.tail = why;
      table.rows.push_back(std::move(row));
      continue;
    }
    const RowReport none{};
    const RowReport& out = pair.out_of_place ? *pair.out_of_place : none;
    const RowReport& in = pair.in_place ? *pair.in_place : none;
    row.cells.insert(row.cells.end(),
                     {time_cell(out), interval_cell(out),
                      time_cell(out.time ? std::optional{out.time->minimum} : std::nullopt),
                      time_cell(out.p99 ? std::optional{out.p99->value} : std::nullopt),
                      bandwidth_cell(out.algbw), bandwidth_cell(out.busbw), time_cell(in),
                      interval_cell(in), bandwidth_cell(in.busbw), wrong_cell(pair)});
    if (estimated) row.cells.push_back(time_cell(number_of(data, "estimate")));
    // Wrong elements have a column of their own; other failures of the in-place row follow the last
    // cell.
    if (in.data != nullptr && !has_rates(*in.data)) row.tail = row_excuse(in);
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Adds a row to its table.
using Fill = std::function<void(TitledTable&, const RowReport&)>;
/// Returns the tables of the rows of one op: one table for each title, to which `fill` adds the
/// rows.
std::vector<TitledTable> tables_by(const BenchReport& bench, std::string_view op,
                                   const std::function<std::string(const results::RowData&)>& title,
                                   const std::vector<Column>& columns, const Fill& fill) {
  std::vector<TitledTable> tables;
  for (const RowReport& row : bench.rows) {
    if (text_of(*row.data, "op") != op) continue;
    const std::string name = title(*row.data);
    auto place = std::ranges::find(tables, name, &TitledTable::title);
    if (place == tables.end()) {
      place = tables.insert(tables.end(), {.title = name, .columns = columns, .rows = {}});
    }
    fill(*place, row);
  }
  return tables;
}

std::vector<TitledTable> gemm_tables(const BenchReport& bench) {
  const auto title = [](const results::RowData& row) {
    const std::string cache = text_of(row, "cache");
    const std::string sums = text_of(row, "fp8_accumulate");
    return escape(fmt::format("gemm, {}{}{}", text_of(row, "dtype"),
                              cache.empty() ? "" : ", " + cache + " caches",
                              sums.empty() ? "" : fmt::format(", fp8_accumulate {}", sums)));
  };
  const auto fill = [](TitledTable& table, const RowReport& row) {
    Row cells{.cells = {}, .tail = row_excuse(row)};
    for (const char* key : {"m", "n", "k", "batch"}) {
      cells.cells.push_back(count_cell(number_of(*row.data, key)));
    }
    if (cells.tail.empty()) {
      cells.cells.insert(
          cells.cells.end(),
          {time_cell(row), interval_cell(row), rate_cell(row.flops), percent(row.of_ceiling),
           percent(row.of_peak), escape(text_of(*row.data, "origin"))});
    }
    table.rows.push_back(std::move(cells));
  };
  return tables_by(bench, "gemm", title,
                   {{"m"},
                    {"n"},
                    {"k"},
                    {"batch"},
                    {"time"},
                    {"±95%"},
                    {"FLOP/s"},
                    {"of ceiling"},
                    {"of datasheet"},
                    {"from", Align::left}},
                   fill);
}

std::string numa_cell(const results::RowData& row) {
  const auto node = number_of(row, "numa");  // below 0: placed by the system
  return node && *node >= 0 ? count_cell(node) : std::string{undefined};
}

std::vector<TitledTable> memory_tables(const BenchReport& bench) {
  const auto title = [](const results::RowData& row) {
    const std::string together = text_of(row, "together");
    const std::string who = together == "all"   ? ", all ranks at once"
                            : together == "one" ? ", one rank alone"
                                                : "";
    return "memory" + who;
  };
  const auto fill = [](TitledTable& table, const RowReport& row) {
    Row cells{.cells = {escape(text_of(*row.data, "kind")), numa_cell(*row.data),
                        size_cell(number_of(*row.data, "bytes"))},
              .tail = row_excuse(row)};
    if (cells.tail.empty()) {
      cells.cells.insert(cells.cells.end(),
                         {time_cell(row), interval_cell(row), bandwidth_cell(row.bandwidth),
                          percent(row.of_memory_peak)});
    }
    table.rows.push_back(std::move(cells));
  };
  return tables_by(bench, "memory", title,
                   {{"kind", Align::left},
                    {"NUMA"},
                    {"moved"},
                    {"time"},
                    {"±95%"},
                    {"bandwidth"},
                    {"of datasheet"}},
                   fill);
}

std::vector<TitledTable> overlap_tables(const BenchReport& bench) {
  if (bench.overlaps.empty()) return {};
  TitledTable table{.title = "overlap: a multiplication and a collective, alone and together",
                    .columns = {{"collective", Align::left},
                                {"size"},
                                {"m"},
                                {"n"},
                                {"k"},
                                {"gemm"},
                                {"collective"},
                                {"together"},
                                {"gemm slowed"},
                                {"collective slowed"},
                                {"hidden"},
                                {"±95%"}},
                    .rows = {}};
  const auto factor = [](std::optional<double> value) {
    return value ? fmt::format("{:.2f}x", *value) : std::string{undefined};
  };
  const auto share = [](const OverlapReport& at) {
    const bool doubtful = at.hidden && !at.hidden_known;
    return percent(value_of(at.hidden)) + (doubtful ? "?" : "");
  };
  const auto interval = [](const std::optional<statistics::Located>& hidden) {
    if (!hidden || !hidden->lower) return std::string{undefined};
    return "±" + percent(std::max(*hidden->upper - hidden->value, hidden->value - *hidden->lower));
  };
  for (const OverlapReport& at : bench.overlaps) {
    Row row{.cells = {escape(fmt::format("{} {}", at.collective, at.dtype)), size_cell(at.bytes),
                      count_cell(at.m), count_cell(at.n), count_cell(at.k), time_cell(at.gemm),
                      time_cell(at.communication), time_cell(at.together), factor(at.gemm_slowdown),
                      factor(at.communication_slowdown), share(at), interval(at.hidden)},
            .tail = escape(at.failure.empty() ? at.why_unknown : at.failure)};
    table.rows.push_back(std::move(row));
  }
  return {table};
}

/// Removes the columns that are empty in all rows.
TitledTable without_empty_columns(TitledTable table) {
  for (std::size_t column = table.columns.size(); column-- > 0;) {
    bool empty = !table.rows.empty();
    bool any = false;
    for (const Row& row : table.rows) {
      if (column >= row.cells.size()) continue;
      any = true;
      empty = empty && (row.cells[column] == undefined || row.cells[column].empty());
    }
    if (!empty || !any) continue;
    const auto at = static_cast<std::ptrdiff_t>(column);
    table.columns.erase(table.columns.begin() + at);
    for (Row& row : table.rows) {
      if (column < row.cells.size()) row.cells.erase(row.cells.begin() + at);
    }
  }
  return table;
}

}  // namespace

std::vector<CollectiveGroup> collective_groups(const BenchReport& bench) {
  std::vector<CollectiveGroup> groups;
  // Finds the entry of a size quickly, since each of many tables has hundreds of rows.
  std::map<std::pair<std::size_t, decltype(size_key(bench.rows.front()))>, std::size_t> open;
  for (const RowReport& row : bench.rows) {
    if (!calibration::is_collective(text_of(*row.data, "op"))) continue;
    CollectiveGroup wanted = group_of(*row.data);
    auto place = std::ranges::find_if(
        groups, [&](const CollectiveGroup& at) { return names(at) == names(wanted); });
    if (place == groups.end()) place = groups.insert(groups.end(), std::move(wanted));
    const std::pair key{static_cast<std::size_t>(place - groups.begin()), size_key(row)};
    const auto known = open.find(key);
    if (known != open.end() && place_of(place->sizes[known->second], row) == nullptr) {
      place_of(place->sizes[known->second], row) = &row;
    } else {
      open[key] = place->sizes.size();
      place_of(place->sizes.emplace_back(), row) = &row;
    }
  }
  return groups;
}

std::string group_title(const CollectiveGroup& group) {
  std::string text = escape(group.op);
  if (group.members > 0) text += fmt::format(" among {:.0f}", group.members);
  if (!group.axis.empty()) text += " on " + escape(group.axis);
  if (group.groups == "one") text += ", one group alone";
  if (group.groups == "all" && group.axis != "world") text += ", all groups at once";
  for (const std::string* const name : {&group.implementation, &group.algorithm, &group.protocol}) {
    if (!name->empty()) text += ", " + escape(*name);
  }
  if (!group.registration.empty()) text += ", registration " + escape(group.registration);
  return text;
}

std::string time_cell(std::optional<double> seconds) {
  return seconds ? units::format(units::Seconds{*seconds}) : std::string{undefined};
}

std::string time_cell(const RowReport& row) {
  return time_cell(row.time ? std::optional{row.time->median} : std::nullopt);
}

std::string interval_cell(const RowReport& row) {
  constexpr std::size_t fewest = 6;
  if (row.time && row.time->lower) {
    return interval_text(
        {.value = row.time->median, .lower = row.time->lower, .upper = row.time->upper});
  }
  const std::size_t plays = row.data == nullptr ? 0 : row.data->times.size();
  return plays > 0 && plays < fewest ? fmt::format("n={}: too few", plays) : std::string{undefined};
}

std::string bandwidth_cell(std::optional<double> bytes_per_second) {
  return bytes_per_second ? units::format(units::BytesPerSecond{*bytes_per_second})
                          : std::string{undefined};
}

std::string rate_cell(std::optional<double> flops) {
  return flops ? units::format(units::FlopsPerSecond{*flops}) : std::string{undefined};
}

std::string size_cell(std::optional<double> bytes) {
  constexpr double most = 9e18;
  if (!bytes || !(*bytes >= 0) || *bytes > most) return std::string{undefined};
  return units::format(units::Bytes{static_cast<std::uint64_t>(*bytes)});
}

std::string count_cell(std::optional<double> count) {
  return count && std::isfinite(*count) ? fmt::format("{:.0f}", *count) : std::string{undefined};
}

std::string row_excuse(const RowReport& row) {
  if (row.data == nullptr || row.data->status == results::PointStatus::ok) return "";
  const std::string reason = escape(row.data->reason);
  return fmt::format("{}: {}", results::name(row.data->status),
                     reason.empty() ? "no reason was recorded" : reason);
}

std::string bench_title(const PointReport& point) {
  const results::PointData& data = *point.data;
  std::vector<std::string> parts{data.workload};
  if (!data.dtype.empty()) parts.push_back(data.dtype);
  parts.push_back(fmt::format("{}", base::counted(data.ranks, "rank")));
  if (const std::string mesh = mesh::to_string(data.mesh); mesh != "1") parts.push_back(mesh);
  if (!data.placement.empty()) parts.push_back(data.placement);
  return escape(fmt::format("{}", fmt::join(parts, ", ")));
}

std::vector<TitledTable> bench_tables(const PointReport& point) {
  std::vector<TitledTable> tables;
  if (!point.bench) return tables;
  const auto add = [&](std::vector<TitledTable> more) {
    for (TitledTable& table : more) tables.push_back(without_empty_columns(std::move(table)));
  };
  add(gemm_tables(*point.bench));
  for (const CollectiveGroup& group : collective_groups(*point.bench)) {
    tables.push_back(without_empty_columns(collective_table(group)));
  }
  add(pair_tables(point));
  add(memory_tables(*point.bench));
  add(overlap_tables(*point.bench));
  add(infer_part_tables(point));
  add(serve_tables(point));
  return tables;
}

}  // namespace isoscale::analysis
