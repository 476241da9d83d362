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
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "analysis/render/cells.hpp"
#include "analysis/render/inference.hpp"
#include "analysis/render/text.hpp"
#include "base/text.hpp"
#include "calibration/calibration.hpp"
#include "units/text.hpp"

namespace isoscale::analysis::render {
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

/// Returns a key that is equal for the out-of-place and the in-place row of one size.
auto size_key(const microbench::RowReport& row) {
  const auto number = [&](const char* key) { return number_of(*row.data, key).value_or(-1); };
  return std::tuple{number("bytes"), number("count"), number("root"), text_of(*row.data, "dtype"),
                    text_of(*row.data, "reduction")};
}

const microbench::RowReport*& place_of(PlacePair& pair, const microbench::RowReport& row) {
  return text_of(*row.data, "in_place") == "yes" ? pair.in_place : pair.out_of_place;
}

std::string wrong_cell(const PlacePair& pair) {
  std::int64_t wrong = 0;
  bool checked = false;
  for (const microbench::RowReport* const row : {pair.out_of_place, pair.in_place}) {
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

/// Returns the reason why a size has no results, or else why its in-place row has none. Wrong
/// elements are left out here, since they have a column of their own.
std::string excuse_of(const PlacePair& pair) {
  if (!microbench::has_rates(*pair.any().data)) return row_excuse(pair.any());
  const microbench::RowReport* const in = pair.in_place;
  return in != nullptr && !microbench::has_rates(*in->data) ? row_excuse(*in) : "";
}

TitledTable collective_table(const CollectiveGroup& group) {
  const bool typed = differs(group, "dtype"), reduced = differs(group, "reduction");
  TitledTable table{group_title(group)};
  const auto& first = *group.sizes.front().any().data;
  if (!typed) table.title += ", " + escape(text_of(first, "dtype"));
  if (!reduced && !text_of(first, "reduction").empty()) {
    table.title += ", " + escape(text_of(first, "reduction"));
  }
  for (const PlacePair& pair : group.sizes) {
    const microbench::RowReport none{};
    const microbench::RowReport& any = pair.any();
    const microbench::RowReport& out = pair.out_of_place ? *pair.out_of_place : none;
    const microbench::RowReport& in = pair.in_place ? *pair.in_place : none;
    std::vector<Cell> cells{{"size", size_cell(number_of(*any.data, "bytes"))}};
    if (typed) cells.push_back(text_of_row("type", any, "dtype"));
    if (reduced) cells.push_back(text_of_row("reduction", any, "reduction"));
    const std::size_t named = microbench::has_rates(*any.data) ? std::string::npos : cells.size();
    const auto least = out.time ? std::optional{out.time->minimum} : std::nullopt;
    for (Cell cell : std::vector<Cell>{{"time", time_cell(out)},
                                       {"±95%", interval_cell(out)},
                                       {"min", time_cell(least)},
                                       {"p99", time_cell(value_of(out.p99))},
                                       {"algbw", bandwidth_cell(out.algbw)},
                                       {"busbw", bandwidth_cell(out.busbw)},
                                       {"in place", time_cell(in)},
                                       {"±95%", interval_cell(in)},
                                       {"busbw", bandwidth_cell(in.busbw)},
                                       {"wrong", wrong_cell(pair)},
                                       {"estimate", time_cell(number_of(*any.data, "estimate"))}}) {
      cells.push_back(std::move(cell));
    }
    table.add(std::move(cells), excuse_of(pair), named);
  }
  return table;
}

std::vector<TitledTable> gemm_tables(const microbench::BenchReport& bench) {
  const auto title = [](const results::RowData& row) {
    const std::string cache = text_of(row, "cache");
    const std::string sums = text_of(row, "fp8_accumulate");
    return escape(fmt::format("gemm, {}{}{}", text_of(row, "dtype"),
                              cache.empty() ? "" : ", " + cache + " caches",
                              sums.empty() ? "" : fmt::format(", fp8_accumulate {}", sums)));
  };
  const auto cells = [](const microbench::RowReport& row) -> std::vector<Cell> {
    const auto count = [&row](const char* key) { return count_cell(number_of(*row.data, key)); };
    return {{"m", count("m")},
            {"n", count("n")},
            {"k", count("k")},
            {"batch", count("batch")},
            {"time", time_cell(row)},
            {"±95%", interval_cell(row)},
            {"FLOP/s", rate_cell(row.flops)},
            {"of ceiling", percent(row.of_ceiling)},
            {"of datasheet", percent(row.of_peak)},
            text_of_row("from", row, "origin")};
  };
  const auto is_gemm = [](const results::RowData& row) { return text_of(row, "op") == "gemm"; };
  return row_tables(bench, is_gemm, title, cells, 4);
}

std::string numa_cell(const results::RowData& row) {
  const auto node = number_of(row, "numa");  // below 0: placed by the system
  return node && *node >= 0 ? count_cell(node) : std::string{undefined};
}

std::vector<TitledTable> memory_tables(const microbench::BenchReport& bench) {
  const auto title = [](const results::RowData& row) -> std::string {
    const std::string together = text_of(row, "together");
    if (together == "all") return "memory, all ranks at once";
    return together == "one" ? "memory, one rank alone" : "memory";
  };
  const auto cells = [](const microbench::RowReport& row) -> std::vector<Cell> {
    return {text_of_row("kind", row, "kind"),
            {"NUMA", numa_cell(*row.data)},
            {"moved", size_cell(number_of(*row.data, "bytes"))},
            {"time", time_cell(row)},
            {"±95%", interval_cell(row)},
            {"bandwidth", bandwidth_cell(row.bandwidth)},
            {"of datasheet", percent(row.of_memory_peak)}};
  };
  const auto is_memory = [](const results::RowData& row) { return text_of(row, "op") == "memory"; };
  return row_tables(bench, is_memory, title, cells, 3);
}

TitledTable overlap_table(const microbench::BenchReport& bench) {
  TitledTable table{"overlap: a multiplication and a collective, alone and together"};
  const auto factor = [](std::optional<double> value) {
    return value ? fmt::format("{:.2f}x", *value) : std::string{undefined};
  };
  const auto interval = [](const std::optional<statistics::Located>& hidden) {
    if (!hidden || !hidden->lower) return std::string{undefined};
    return "±" + percent(std::max(*hidden->upper - hidden->value, hidden->value - *hidden->lower));
  };
  for (const microbench::OverlapReport& at : bench.overlaps) {
    const char* const doubt = at.hidden && !at.hidden_known ? "?" : "";
    table.add({words_cell("collective", escape(fmt::format("{} {}", at.collective, at.dtype))),
               {"size", size_cell(at.bytes)},
               {"m", count_cell(at.m)},
               {"n", count_cell(at.n)},
               {"k", count_cell(at.k)},
               {"gemm", time_cell(at.gemm)},
               {"collective", time_cell(at.communication)},
               {"together", time_cell(at.together)},
               {"gemm slowed", factor(at.gemm_slowdown)},
               {"collective slowed", factor(at.communication_slowdown)},
               {"hidden", percent(value_of(at.hidden)) + doubt},
               {"±95%", interval(at.hidden)}},
              escape(at.failure.empty() ? at.why_unknown : at.failure));
  }
  return table;
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

std::vector<CollectiveGroup> collective_groups(const microbench::BenchReport& bench) {
  std::vector<CollectiveGroup> groups;
  // This map finds the entry of a size quickly, since there are many tables with hundreds of rows
  // each.
  std::map<std::pair<std::size_t, decltype(size_key(bench.rows.front()))>, std::size_t> open;
  for (const microbench::RowReport& row : bench.rows) {
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

std::vector<TitledTable> row_tables(
    const microbench::BenchReport& bench,
    const std::function<bool(const results::RowData&)>& belongs,
    const std::function<std::string(const results::RowData&)>& title, const RowCells& cells,
    std::size_t named) {
  std::vector<TitledTable> tables;
  for (const microbench::RowReport& row : bench.rows) {
    if (!belongs(*row.data)) continue;
    const std::string name = title(*row.data);
    auto place = std::ranges::find(tables, name, &TitledTable::title);
    if (place == tables.end()) place = tables.insert(tables.end(), TitledTable{name});
    place->add(cells(row), row_excuse(row), named);
  }
  return tables;
}

Cell text_of_row(std::string heading, const microbench::RowReport& row, const char* key) {
  return words_cell(std::move(heading), escape(text_of(*row.data, key)));
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

std::string time_cell(const microbench::RowReport& row) {
  return time_cell(row.time ? std::optional{row.time->median} : std::nullopt);
}

std::string interval_cell(const microbench::RowReport& row) {
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

std::string row_excuse(const microbench::RowReport& row) {
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
    std::ranges::move(more, std::back_inserter(tables));
  };
  add(gemm_tables(*point.bench));
  for (const CollectiveGroup& group : collective_groups(*point.bench)) {
    tables.push_back(collective_table(group));
  }
  add(pair_tables(point));
  add(memory_tables(*point.bench));
  tables.push_back(overlap_table(*point.bench));
  add(infer_part_tables(point));
  add(serve_tables(point));
  for (TitledTable& table : tables) table = without_empty_columns(std::move(table));
  return tables;
}

}  // namespace isoscale::analysis::render
