// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/predict/collective_times.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/json_values.hpp"
#include "analysis/render/render.hpp"
#include "analysis/render/text.hpp"
#include "base/text.hpp"

namespace isoscale::analysis::predict {
namespace {

using Json = nlohmann::ordered_json;

Json row_json(const CollectiveTime& row) {
  return {{"ranks", row.ranks},
          {"nodes", row.nodes},
          {"members", row.members},
          {"groups", row.groups},
          {"op", row.op},
          {"dtype", row.dtype},
          {"reduction", render::text_or_null(row.reduction)},
          {"root", row.root},
          {"bytes", render::count_or_null(row.bytes)},
          {"count", render::count_or_null(row.count)},
          {"time", row.seconds},
          {"algbw", render::number_or_null(row.algbw)},
          {"busbw", render::number_or_null(row.busbw)},
          {"algorithm", render::text_or_null(row.algorithm)},
          {"protocol", render::text_or_null(row.protocol)}};
}

constexpr std::string_view line_format =
    "{:>12}  {:>12}  {:>8}  {:>6}  {:>6}  {:>9}  {:>7}  {:>7}{}{}\n";

std::string table_heading(const CollectiveTime& row) {
  return fmt::format("#\n# {}, {} on {}, {} of {}\n#\n", row.op, base::counted(row.ranks, "rank"),
                     base::counted(row.nodes, "node"), row.groups == "one" ? "one group" : "groups",
                     row.members) +
         fmt::format(fmt::runtime(line_format), "#       size", "count", "type", "redop", "root",
                     "time", "algbw", "busbw", "  algorithm", "") +
         fmt::format(fmt::runtime(line_format), "#        (B)", "(elements)", "", "", "", "(us)",
                     "(GB/s)", "(GB/s)", "", "");
}

std::string table_line(const CollectiveTime& row) {
  const auto rate = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.2f}", *value * 1e-9) : "N/A";
  };
  return fmt::format(fmt::runtime(line_format), fmt::format("{:.0f}", row.bytes),
                     fmt::format("{:.0f}", row.count), render::nccl_type_name(row.dtype),
                     row.reduction.empty() ? "none" : row.reduction, row.root,
                     fmt::format("{:.2f}", row.seconds * 1e6), rate(row.algbw), rate(row.busbw),
                     row.algorithm.empty() ? "" : "  " + row.algorithm,
                     row.protocol.empty() ? "" : "/" + row.protocol);
}

}  // namespace

std::string render_text(const CollectiveTimes& times) {
  std::string text =
      fmt::format("# {} ({}){}, {} ranks on a node: predicted, not measured\n",
                  render::escape(times.source), render::escape(times.machine),
                  times.what_if.empty() ? "" : " if " + times.what_if, times.node_ranks);
  const CollectiveTime* last = nullptr;
  for (const CollectiveTime& row : times.rows) {
    if (last == nullptr || last->ranks != row.ranks || last->op != row.op ||
        last->groups != row.groups) {
      text += table_heading(row);
    }
    text += table_line(row);
    last = &row;
  }
  return text;
}

std::string render_json(const CollectiveTimes& times) {
  return render::dumped({{"schema_version", "1.0"},
                         {"source", times.source},
                         {"machine", times.machine},
                         {"what_if", render::text_or_null(times.what_if)},
                         {"workload", "collectives"},
                         {"node_ranks", times.node_ranks},
                         {"rows", render::list_json(times.rows, row_json)}});
}

std::string render_csv(const CollectiveTimes& times) {
  const Json row_keys = row_json({});  // each key is a column
  std::string columns;
  for (const auto& [key, value] : row_keys.items()) columns += key + " ";
  columns += "what_if";
  std::vector<render::CsvCell> names;
  render::add_csv_cells(names, Json::object(), columns);
  std::string text = render::csv_heading(names);
  for (const CollectiveTime& row : times.rows) {
    std::vector<render::CsvCell> cells;
    Json values = row_json(row);
    values["what_if"] = times.what_if;
    render::add_csv_cells(cells, values, columns);
    text += render::csv_values(cells);
  }
  return text;
}

}  // namespace isoscale::analysis::predict
