// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/sides.hpp"
#include "analysis/render/curve_tables.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/text.hpp"
#include "mesh/mesh.hpp"

namespace isoscale::analysis::compare {
namespace {

constexpr std::size_t most_of_value = 60, most_of_title = 200;  ///< characters that are shown
constexpr std::size_t unlimited = std::string::npos;  ///< line length: lines are not wrapped

/// Returns "UNLIKE" if the point's settings differ between the sides, else "". The title of the
/// curve names these settings.
std::string mark(const Comparison& of, const Difference& at) {
  return marks_of(of, at.curve, at.side, at.ranks).empty() ? "" : "UNLIKE";
}

/// Returns the number of launches whose values the point has: "3", or "2 of 3" if one was left out;
/// lines below the tables give the reasons.
std::string launches_cell(const SideCurve& side, std::size_t i) {
  const int ranks = side.curve.points[i].data->ranks;
  const std::size_t counted = side.joined->launches[i].size();
  const auto left_out = static_cast<std::size_t>(std::ranges::count_if(
      side.joined->left_out,
      [&](const merge::LeftOut& at) { return at.at.point->data->ranks == ranks; }));
  return left_out == 0 ? std::to_string(counted)
                       : fmt::format("{} of {}", counted, counted + left_out);
}

render::Value efficiency_of(const PointReport& point) {
  const auto efficiency = render::efficiency_of(point);
  return render::value_json(efficiency ? with_interval(*efficiency, "%", "") : "");
}

/// Returns a table with a row for each difference of a curve. If `curve` is absent, the table has
/// the differences of all curves, and no column for the efficiency.
render::DocumentTable differences_table(const Comparison& of, std::optional<std::size_t> curve,
                                        std::string title) {
  render::DocumentTable table{.title = std::move(title)};
  for (const Difference& at : of.differences) {
    if (curve && at.curve != *curve) continue;
    std::vector<render::Cell> cells;
    const auto add = [&cells](std::string heading, render::Value value, Unit unit = Unit::count) {
      cells.push_back({std::move(heading), std::move(value), unit});
    };
    if (!curve) {
      add("curve", render::escape_up_to(of.curves[at.curve].title, most_of_value), Unit::text);
    }
    add("ranks", render::Json(at.ranks));
    add("side", of.sides[at.side].name, Unit::text);
    add("throughput", change_text(at.throughput.value));
    add("95%", change_interval(at.throughput));
    if (curve) {
      add("efficiency, points", points_text(at.efficiency));
      add("95%", points_interval(at.efficiency));
      add("launches", fmt::format("{}, {}", at.launches_first, at.launches));
    }
    add("throughput verdict", std::string{name(at.verdict)}, Unit::text);
    add("", mark(of, at), Unit::text);
    add_row(table, std::move(cells));
  }
  return table;
}

render::DocumentTable normalised_table(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  render::DocumentTable table{.title = "over what the machines have"};
  for_each_point(curve, [&](std::size_t s, const SideCurve& side, std::size_t i) {
    std::vector<render::Cell> cells{{"ranks", render::Json(side.curve.points[i].data->ranks)},
                                    {"side", of.sides[s].name, Unit::text}};
    bool any = false;
    for (const Rate& rate : rates) {
      const auto value = (side.*rate.all)[i].value;
      any = any || value;
      std::string heading{rate.over};
      if (rate.of == Unit::prefixed) {
        heading = render::throughput_unit(curve.sides.front()->curve) + " " + heading;
      }
      cells.push_back({std::move(heading),
                       render::value_json(value ? std::optional{*value * rate.unit} : std::nullopt),
                       rate.of});
    }
    if (any) add_row(table, std::move(cells));
  });
  return table;
}

/// Returns a table of the facts in which the machines differ. It has no rows if they do not differ.
render::DocumentTable machines_table(const Comparison& of) {
  render::DocumentTable table{.title = "what differs between the machines"};
  for (const MachineDifference& at : of.machines) {
    std::vector<render::Cell> cells{{"", render::escape_up_to(at.name, most_of_value), Unit::text}};
    for (std::size_t s = 0; s < at.values.size(); ++s) {
      const std::string& value = at.values[s];
      cells.push_back({of.sides[s].name,
                       value.empty() ? std::string{render::undefined}
                                     : render::escape_up_to(value, most_of_value),
                       Unit::text});
    }
    add_row(table, std::move(cells));
  }
  return table;
}

/// Returns a table with a row for each compared point, with its verdict.
render::DocumentTable gate_table(const Comparison& of) {
  return differences_table(of, std::nullopt,
                           fmt::format("gate {}, point by point", render::percent(of.gate->loss)));
}

/// Returns `opening` followed by all parts of the comparison except the gate's table.
render::Document comparison_document(const Comparison& of, render::Document opening) {
  render::Document document = std::move(opening);
  render::append(document, sides_table(of));
  render::append(document, machines_table(of));
  render::append(document, comparison_facts(of));
  const std::string& first = of.sides.front().name;
  for (std::size_t c = 0; c < of.curves.size(); ++c) {
    document.emplace_back(render::Heading{curve_title(of, c), render::Underline::yes});
    render::append(document, points_table(of, c));
    if (!of.refused) {
      render::append(
          document,
          differences_table(of, c, "differences from " + first + ", 95% intervals over launches"));
    }
    render::append(document, normalised_table(of, c));
    render::append(document, curve_facts(of, c));
  }
  document.emplace_back(render::Heading{""});
  render::append_sentences(document, comparison_key(of));
  return document;
}

}  // namespace

std::string curve_title(const Comparison& of, std::size_t curve) {
  std::string text = render::escape_up_to(of.curves[curve].title, most_of_title);
  std::set<std::string> whats;
  for (const Unlike& at : of.unlike) {
    if (at.curve == curve) whats.insert(render::escape_up_to(at.what, most_of_value));
  }
  return whats.empty() ? text : fmt::format("{} [UNLIKE {}]", text, fmt::join(whats, ", "));
}

render::DocumentTable points_table(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  std::vector<const PointReport*> points;
  std::vector<render::Value> sides, launches, efficiencies, notes;
  for_each_point(curve, [&](std::size_t s, const SideCurve& side, std::size_t i) {
    points.push_back(&side.curve.points[i]);
    sides.emplace_back(of.sides[s].name);
    launches.emplace_back(launches_cell(side, i));
    efficiencies.push_back(efficiency_of(*points.back()));
    notes.push_back(render::value_json(render::notes(*points.back())));
  });
  render::DocumentTable table = render::table_of<PointReport>(
      render::point_metrics(), points,
      render::completed<PointReport>(
          render::point_metrics(),
          "ranks side mesh_text launches step_time_shown interval ... shares notes",
          render::in_compare),
      {{{"side", "side"}, sides},
       {{"launches", "launches", Unit::count}, launches},
       {{"shares", "efficiency", Unit::share}, efficiencies},
       {{"notes", ""}, notes}});
  for (render::DocumentColumn& column : table.columns) {
    if (column.key != "throughput") continue;
    column.heading = render::throughput_unit(curve.sides.front()->curve);
  }
  table.title = "points of each side";
  return table;
}

render::DocumentTable sides_table(const Comparison& of) {
  render::DocumentTable table{.title = fmt::format("{} sides; what follows is against {}",
                                                   of.sides.size(), of.sides.front().name)};
  std::set<std::vector<std::string>> machines;
  for (const Side& side : of.sides) machines.insert(machine_names(side));
  for (const Side& side : of.sides) {
    std::string first = side.runs.front().data->created;
    for (const RunReport& run : side.runs) first = std::min(first, run.data->created);
    std::vector<render::Cell> cells{
        {"side", side.name, Unit::text},
        {"launches", render::Json(side.runs.size())},
        {"began", render::escape_up_to(first, most_of_value), Unit::text}};
    if (machines.size() > 1) {
      const std::string names = fmt::format("{}", fmt::join(machine_names(side), "; "));
      cells.push_back({"machine", render::escape_up_to(names, most_of_value), Unit::text});
    }
    cells.push_back({"files", files_text(side), Unit::text});
    add_row(table, std::move(cells));
  }
  return table;
}

std::string render_text(const Comparison& of) {
  render::Document opening;
  render::append_sentences(opening, overall_sentences(of));
  render::Document document = comparison_document(of, std::move(opening));
  if (of.gate) {
    render::append(document, gate_table(of));
    document.emplace_back(render::Heading{gate_sentence(of)});
  }
  return to_text(document, unlimited);
}

std::string render_markdown(const Comparison& of) {
  render::Document opening{render::Heading{"Comparison"}};
  if (of.refused) {
    opening.emplace_back(render::Paragraph{"Not compared: the sides measured different things."});
  }
  render::append_sentences(opening, overall_sentences(of));
  if (of.gate) {
    opening.emplace_back(render::Paragraph{gate_sentence(of)});
    render::append(opening, gate_table(of));
  }
  return render::to_markdown(comparison_document(of, std::move(opening)));
}

}  // namespace isoscale::analysis::compare
