// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/sides.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/text.hpp"
#include "analysis/render/text_and_markdown.hpp"
#include "mesh/mesh.hpp"

namespace isoscale::analysis::compare {
namespace {

constexpr std::size_t most_of_value = 60, most_of_title = 200;
constexpr double giga = 1e9;
constexpr std::size_t unlimited = std::string::npos;  ///< line length, for no wrapping

/// Calls visit(side's number, the side's curve, index of the point) for each point of all sides, in
/// ascending order of ranks.
template <class Visit>
void for_each_point_by_ranks(const ComparedCurve& curve, const Visit& visit) {
  std::set<std::tuple<int, std::size_t, std::size_t>> places;  // ranks, side, index
  for (std::size_t s = 0; s < curve.sides.size(); ++s) {
    if (!curve.sides[s]) continue;
    const auto& points = curve.sides[s]->curve.points;
    for (std::size_t i = 0; i < points.size(); ++i) places.emplace(points[i].data->ranks, s, i);
  }
  for (const auto& [ranks, s, i] : places) visit(s, *curve.sides[s], i);
}

/// Returns "UNLIKE" if the point's settings differ between the sides, else "". The title of the
/// curve names these settings.
std::string mark(const Comparison& of, const Difference& at) {
  return marks_of(of, at.curve, at.side, at.ranks).empty() ? "" : "UNLIKE";
}

/// Returns the number of launches that count: "3", or "2 of 3" if some do not count; lines below
/// the tables give the reasons.
std::string launches_cell(const SideCurve& side, std::size_t i) {
  const int ranks = side.curve.points[i].data->ranks;
  const std::size_t counted = side.joined->launches[i].size();
  const auto left_out = static_cast<std::size_t>(std::ranges::count_if(
      side.joined->left_out,
      [&](const merge::LeftOut& at) { return at.at.point->data->ranks == ranks; }));
  return left_out == 0 ? std::to_string(counted)
                       : fmt::format("{} of {}", counted, counted + left_out);
}

std::string efficiency_cell(const PointReport& point) {
  const auto efficiency = render::efficiency_of(point);
  return efficiency ? with_interval(*efficiency, "%", "") : std::string{render::undefined};
}

render::TitledTable differences_table(const Comparison& of, std::size_t c) {
  render::TitledTable table{
      fmt::format("differences from {}, 95% intervals over launches", of.sides.front().name)};
  for (const Difference& at : of.differences) {
    if (at.curve != c) continue;
    table.add({{"ranks", std::to_string(at.ranks)},
               render::words_cell("side", of.sides[at.side].name),
               {"throughput", change_text(at.throughput.value)},
               {"95%", change_interval(at.throughput)},
               {"efficiency, points", points_text(at.efficiency)},
               {"95%", points_interval(at.efficiency)},
               {"launches", fmt::format("{}, {}", at.launches_first, at.launches)},
               render::words_cell("throughput verdict", std::string{name(at.verdict)}),
               render::words_cell("", mark(of, at))});
  }
  return table;
}

std::string rate_cell(const Normalised& rate, double factor) {
  return rate.value ? render::count_text(*rate.value * factor) : std::string{render::undefined};
}

render::TitledTable normalised_table(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  const std::string unit = render::throughput_unit(curve.sides.front()->curve);
  render::TitledTable table{"over what the machines have"};
  for_each_point_by_ranks(curve, [&](std::size_t s, const SideCurve& side, std::size_t i) {
    if (!side.of_peak[i].value && !side.per_link[i].value && !side.per_watt[i].value) return;
    table.add({{"ranks", std::to_string(side.curve.points[i].data->ranks)},
               render::words_cell("side", of.sides[s].name),
               {"FLOP/s of peak", render::percent(side.of_peak[i].value)},
               {unit + " per GB/s of link", rate_cell(side.per_link[i], giga)},
               {unit + " per W", rate_cell(side.per_watt[i], 1)}});
  });
  return table;
}

/// Returns the differences between the machines; no rows where there are none.
render::TitledTable machines_table(const Comparison& of) {
  render::TitledTable table{"what differs between the machines"};
  for (const MachineDifference& at : of.machines) {
    std::vector<render::Cell> cells{
        render::words_cell("", render::escape_up_to(at.name, most_of_value))};
    for (std::size_t s = 0; s < at.values.size(); ++s) {
      const std::string& value = at.values[s];
      cells.push_back(render::words_cell(
          of.sides[s].name, value.empty() ? std::string{render::undefined}
                                          : render::escape_up_to(value, most_of_value)));
    }
    table.add(std::move(cells));
  }
  return table;
}

/// Returns a table with a row for each compared point, with its verdict.
render::TitledTable gate_table(const Comparison& of) {
  render::TitledTable table{fmt::format("gate {}, point by point", render::percent(of.gate->loss))};
  for (const Difference& at : of.differences) {
    table.add({render::words_cell("curve",
                                  render::escape_up_to(of.curves[at.curve].title, most_of_value)),
               {"ranks", std::to_string(at.ranks)},
               render::words_cell("side", of.sides[at.side].name),
               {"throughput", change_text(at.throughput.value)},
               {"95%", change_interval(at.throughput)},
               render::words_cell("throughput verdict", std::string{name(at.verdict)}),
               render::words_cell("", mark(of, at))});
  }
  return table;
}

/// Returns `opening` followed by the rest of the comparison, except the gate's table.
render::Document comparison_document(const Comparison& of, render::Document opening) {
  render::Document document = std::move(opening);
  render::append(document, sides_table(of));
  render::append(document, machines_table(of));
  render::append(document, comparison_facts(of));
  for (std::size_t c = 0; c < of.curves.size(); ++c) {
    document.emplace_back(render::Heading{curve_title(of, c), render::Underline::yes});
    render::append(document, points_table(of, c));
    if (!of.refused) render::append(document, differences_table(of, c));
    render::append(document, normalised_table(of, c));
    render::append(document, curve_facts(of, c));
  }
  document.emplace_back(render::Heading{""});
  for (const std::string& sentence : comparison_key(of))
    document.emplace_back(render::Paragraph{sentence});
  return document;
}

void add_sentences(render::Document& document, const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) document.emplace_back(render::Paragraph{sentence});
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

render::TitledTable points_table(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  render::TitledTable table{"points of each side"};
  const std::string unit = render::throughput_unit(curve.sides.front()->curve);
  for_each_point_by_ranks(curve, [&](std::size_t s, const SideCurve& side, std::size_t i) {
    const PointReport& point = side.curve.points[i];
    table.add({{"ranks", std::to_string(point.data->ranks)},
               render::words_cell("side", of.sides[s].name),
               render::words_cell("mesh", mesh::to_string(point.data->mesh)),
               {"launches", launches_cell(side, i)},
               {"step time", render::step_time(point)},
               {"±95%", render::interval(point)},
               {unit, render::throughput(point)},
               {"FLOP/s/rank", render::flops_per_rank(point)},
               {"efficiency", efficiency_cell(point)},
               render::words_cell("", render::notes(point))});
  });
  return table;
}

render::TitledTable sides_table(const Comparison& of) {
  render::TitledTable table{
      fmt::format("{} sides; what follows is against {}", of.sides.size(), of.sides.front().name)};
  std::set<std::vector<std::string>> machines;
  for (const Side& side : of.sides) machines.insert(machine_names(side));
  for (const Side& side : of.sides) {
    std::string first = side.runs.front().data->created;
    for (const RunReport& run : side.runs) first = std::min(first, run.data->created);
    std::vector<render::Cell> cells{
        render::words_cell("side", side.name),
        {"launches", std::to_string(side.runs.size())},
        render::words_cell("began", render::escape_up_to(first, most_of_value))};
    if (machines.size() > 1) {
      const std::string names = fmt::format("{}", fmt::join(machine_names(side), "; "));
      cells.push_back(render::words_cell("machine", render::escape_up_to(names, most_of_value)));
    }
    cells.push_back(render::words_cell("files", files_text(side)));
    table.add(std::move(cells));
  }
  return table;
}

std::string render_text(const Comparison& of) {
  render::Document opening;
  add_sentences(opening, overall_sentences(of));
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
  add_sentences(opening, overall_sentences(of));
  if (of.gate) {
    opening.emplace_back(render::Paragraph{gate_sentence(of)});
    render::append(opening, gate_table(of));
  }
  return render::to_markdown(comparison_document(of, std::move(opening)));
}

}  // namespace isoscale::analysis::compare
