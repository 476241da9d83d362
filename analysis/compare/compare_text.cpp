// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/sides.hpp"
#include "analysis/render/text.hpp"
#include "analysis/render/text_and_markdown.hpp"
#include "mesh/mesh.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t most_of_value = 60, most_of_title = 200;
constexpr double giga = 1e9;

std::set<int> ranks_of(const ComparedCurve& curve) {
  std::set<int> all;
  for (const auto& side : curve.sides) {
    if (!side) continue;
    for (const PointReport& point : side->curve.points) all.insert(point.data->ranks);
  }
  return all;
}

/// Calls visit(side number, its curve, index of the point) for each side that has the point.
template <class Visit>
void for_each_side(const ComparedCurve& curve, int ranks, const Visit& visit) {
  for (std::size_t s = 0; s < curve.sides.size(); ++s) {
    if (!curve.sides[s]) continue;
    const auto& points = curve.sides[s]->curve.points;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].data->ranks == ranks) visit(s, *curve.sides[s], i);
    }
  }
}

/// Returns "UNLIKE" for a point whose settings differ, else ""; the title of the curve names the
/// settings.
std::string mark(const Comparison& of, const Difference& at) {
  return marks_of(of, at.curve, at.side, at.ranks).empty() ? "" : "UNLIKE";
}

/// Returns the number of launches that count, "2 of 3" where some do not; the lines below the
/// tables say why.
std::string launches_cell(const SideCurve& side, std::size_t i) {
  const int ranks = side.curve.points[i].data->ranks;
  const std::size_t counted = side.joined->launches[i].size();
  const auto left_out = static_cast<std::size_t>(std::ranges::count_if(
      side.joined->left_out, [&](const LeftOut& at) { return at.at.point->data->ranks == ranks; }));
  return left_out == 0 ? std::to_string(counted)
                       : fmt::format("{} of {}", counted, counted + left_out);
}

std::string efficiency_cell(const PointReport& point) {
  if (!point.efficiency || !point.speedup_interval || !point.speedup_interval->lower) {
    return percent(point.efficiency);
  }
  const double ideal = *point.speedup / *point.efficiency;
  return with_interval({.value = *point.efficiency,
                        .lower = *point.speedup_interval->lower / ideal,
                        .upper = *point.speedup_interval->upper / ideal},
                       "%", "");
}

TitledTable points_table(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  TitledTable table{.title = "points of each side",
                    .columns = {{"ranks"},
                                {"side", Align::left},
                                {"mesh", Align::left},
                                {"launches"},
                                {"step time"},
                                {"±95%"},
                                {throughput_unit(curve.sides.front()->curve)},
                                {"FLOP/s/rank"},
                                {"efficiency"},
                                {"", Align::left}},
                    .rows = {}};
  for (const int ranks : ranks_of(curve)) {
    for_each_side(curve, ranks, [&](std::size_t s, const SideCurve& side, std::size_t i) {
      const PointReport& point = side.curve.points[i];
      table.rows.push_back(
          {.cells = {std::to_string(ranks), of.sides[s].name, mesh::to_string(point.data->mesh),
                     launches_cell(side, i), step_time(point), interval(point), throughput(point),
                     flops_per_rank(point), efficiency_cell(point), notes(point)},
           .tail = ""});
    });
  }
  return table;
}

TitledTable differences_table(const Comparison& of, std::size_t c) {
  TitledTable table{.title = fmt::format("differences from {}, 95% intervals over launches",
                                         of.sides.front().name),
                    .columns = {{"ranks"},
                                {"side", Align::left},
                                {"throughput"},
                                {"95%"},
                                {"efficiency, points"},
                                {"95%"},
                                {"launches"},
                                {"throughput verdict", Align::left},
                                {"", Align::left}},
                    .rows = {}};
  for (const Difference& at : of.differences) {
    if (at.curve != c) continue;
    table.rows.push_back(
        {.cells = {std::to_string(at.ranks), of.sides[at.side].name,
                   change_text(at.throughput.value), change_interval(at.throughput),
                   points_text(at.efficiency), points_interval(at.efficiency),
                   fmt::format("{}, {}", at.launches_first, at.launches),
                   std::string{name(at.verdict)}, mark(of, at)},
         .tail = ""});
  }
  return table;
}

std::string count_cell(const std::optional<double>& value, double factor) {
  if (!value) return std::string{undefined};
  std::string text = units::format_count(*value * factor, "");
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

TitledTable normalised_table(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  const std::string unit = throughput_unit(curve.sides.front()->curve);
  TitledTable table{.title = "over what the machines have",
                    .columns = {{"ranks"},
                                {"side", Align::left},
                                {"FLOP/s of peak"},
                                {unit + " per GB/s of link"},
                                {unit + " per W"}},
                    .rows = {}};
  for (const int ranks : ranks_of(curve)) {
    for_each_side(curve, ranks, [&](std::size_t s, const SideCurve& side, std::size_t i) {
      const bool any = side.of_peak[i].value || side.per_link[i].value || side.per_watt[i].value;
      if (!any) return;
      table.rows.push_back(
          {.cells = {std::to_string(ranks), of.sides[s].name, percent(side.of_peak[i].value),
                     count_cell(side.per_link[i].value, giga),
                     count_cell(side.per_watt[i].value, 1)},
           .tail = ""});
    });
  }
  return table;
}

std::string lines(const Facts& facts) {
  constexpr std::size_t key_width = 8;
  std::string text;
  for (const auto& [key, value] : facts) {
    const std::size_t width = std::min(key_width, display_width(key));
    text += fmt::format("  {}{:{}} {}\n", key, "", key_width - width, value);
  }
  return text;
}

std::string titled(const TitledTable& part) {
  return part.title + "\n" + table(part.columns, part.rows);
}

std::string heading(const std::string& title) {
  std::string text = fmt::format("\n{}\n", title);
  for (std::size_t i = std::min<std::size_t>(120, display_width(title)); i > 0; --i) text += "─";
  return text + "\n";
}

}  // namespace

std::string curve_title(const Comparison& of, std::size_t curve) {
  std::string text = escape_up_to(of.curves[curve].title, most_of_title);
  std::set<std::string> whats;
  for (const Unlike& at : of.unlike) {
    if (at.curve == curve) whats.insert(escape_up_to(at.what, most_of_value));
  }
  return whats.empty() ? text : fmt::format("{} [UNLIKE {}]", text, fmt::join(whats, ", "));
}

TitledTable sides_table(const Comparison& of) {
  TitledTable table{.title = fmt::format("{} sides; what follows is against {}", of.sides.size(),
                                         of.sides.front().name),
                    .columns = {{"side", Align::left}, {"launches"}, {"began", Align::left}},
                    .rows = {}};
  std::set<std::vector<std::string>> machines;
  for (const Side& side : of.sides) machines.insert(machine_names(side));
  const bool differ = machines.size() > 1;
  if (differ) table.columns.push_back({"machine", Align::left});
  table.columns.push_back({"files", Align::left});
  for (const Side& side : of.sides) {
    std::string first = side.runs.front().data->created;
    for (const RunReport& run : side.runs) first = std::min(first, run.data->created);
    Row row{
        .cells = {side.name, std::to_string(side.runs.size()), escape_up_to(first, most_of_value)},
        .tail = ""};
    if (differ) {
      row.cells.push_back(
          escape_up_to(fmt::format("{}", fmt::join(machine_names(side), "; ")), most_of_value));
    }
    row.cells.push_back(files_text(side));
    table.rows.push_back(std::move(row));
  }
  return table;
}

TitledTable machines_table(const Comparison& of) {
  TitledTable table{
      .title = "what differs between the machines", .columns = {{"", Align::left}}, .rows = {}};
  for (const Side& side : of.sides) table.columns.push_back({side.name, Align::left});
  for (const MachineDifference& at : of.machines) {
    Row row{.cells = {escape_up_to(at.name, most_of_value)}, .tail = ""};
    for (const std::string& value : at.values) {
      row.cells.push_back(value.empty() ? std::string{undefined}
                                        : escape_up_to(value, most_of_value));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<TitledTable> curve_tables(const Comparison& of, std::size_t curve) {
  std::vector<TitledTable> tables{points_table(of, curve)};
  if (!of.refused) tables.push_back(differences_table(of, curve));
  tables.push_back(normalised_table(of, curve));
  std::erase_if(tables, [](const TitledTable& at) { return at.rows.empty(); });
  return tables;
}

TitledTable gate_table(const Comparison& of) {
  TitledTable table{.title = fmt::format("gate {}, point by point", percent(of.gate->loss)),
                    .columns = {{"curve", Align::left},
                                {"ranks"},
                                {"side", Align::left},
                                {"throughput"},
                                {"95%"},
                                {"throughput verdict", Align::left},
                                {"", Align::left}},
                    .rows = {}};
  for (const Difference& at : of.differences) {
    table.rows.push_back(
        {.cells = {escape_up_to(of.curves[at.curve].title, most_of_value), std::to_string(at.ranks),
                   of.sides[at.side].name, change_text(at.throughput.value),
                   change_interval(at.throughput), std::string{name(at.verdict)}, mark(of, at)},
         .tail = ""});
  }
  return table;
}

std::string render_text(const Comparison& of) {
  std::string text;
  for (const std::string& sentence : overall_sentences(of)) text += sentence + "\n";
  if (!text.empty()) text += "\n";
  text += titled(sides_table(of));
  if (const TitledTable machines = machines_table(of); !machines.rows.empty()) {
    text += "\n" + titled(machines);
  }
  if (const Facts facts = comparison_facts(of); !facts.empty()) text += "\n" + lines(facts);
  for (std::size_t c = 0; c < of.curves.size(); ++c) {
    text += heading(curve_title(of, c));
    for (const TitledTable& part : curve_tables(of, c)) text += titled(part) + "\n";
    text += lines(curve_facts(of, c));
  }
  text += "\n";
  for (const std::string& sentence : comparison_key(of)) text += sentence + "\n";
  if (of.gate) text += "\n" + titled(gate_table(of)) + "\n" + gate_sentence(of) + "\n";
  return text;
}

std::string render_markdown(const Comparison& of) {
  std::string text = "## Comparison\n";
  if (of.refused) text += "\n**Not compared: the sides measured different things.**\n";
  for (const std::string& sentence : overall_sentences(of)) {
    text += fmt::format("\n**{}**\n", literal(sentence));
  }
  if (of.gate) {
    text += fmt::format("\n**{}**\n", literal(gate_sentence(of)));
    text += markdown_tables({gate_table(of)});
  }
  text += markdown_tables({sides_table(of)});
  if (const TitledTable machines = machines_table(of); !machines.rows.empty()) {
    text += markdown_tables({machines});
  }
  if (const Facts facts = comparison_facts(of); !facts.empty()) {
    text += "\n" + markdown_list(facts);
  }
  for (std::size_t c = 0; c < of.curves.size(); ++c) {
    text += fmt::format("\n### {}\n", literal(curve_title(of, c)));
    text += markdown_tables(curve_tables(of, c)) + "\n" + markdown_list(curve_facts(of, c));
  }
  text += "\n";
  for (const std::string& sentence : comparison_key(of)) text += literal(sentence) + "\n";
  return text;
}

}  // namespace isoscale::analysis
