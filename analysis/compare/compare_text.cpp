// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/comparison_internals.hpp"
#include "analysis/render/curve_tables_and_remarks.hpp"
#include "analysis/render/document_and_metrics.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::compare {
namespace {

/// The largest number of characters that are shown of a value, a file name and a title.
constexpr std::size_t most_of_value = 60, most_of_file = 60, most_of_title = 200;
constexpr std::size_t unlimited = std::string::npos;  ///< line length: lines are not wrapped

/// Collects sentences about points of several sides (a side is the runs of one machine). Sides that
/// have the same sentence at the same rank counts share a line: "A, B: ... (1, 2 ranks)".
class SaidOfSides {
 public:
  void add(const std::string& side, int ranks, const std::string& sentence) {
    said_[sentence][side].insert(ranks);
  }
  void append_to(render::Facts& facts, const std::string& key) const {
    for (const auto& [sentence, of_sides] : said_) {
      std::map<std::set<int>, std::vector<std::string>> alike;
      for (const auto& [side, ranks] : of_sides) alike[ranks].push_back(side);
      for (const auto& [ranks, sides] : alike) {
        facts.emplace_back(
            key, fmt::format("{}: {} ({})", fmt::join(sides, ", "), sentence,
                             base::counted(std::vector<int>{ranks.begin(), ranks.end()}, "rank")));
      }
    }
  }

 private:
  std::map<std::string, std::map<std::string, std::set<int>>> said_;
};

/// True for the rate per link of a point with a single rank. Such a point uses no link, so reports
/// do not explain why the rate is absent.
bool has_no_link(const Rate& rate, const SideCurve& side, std::size_t i) {
  return rate.all == &SideCurve::per_link && side.curve.points[i].data->ranks == 1;
}

bool is_known(const ComparedCurve& curve, const Rate& rate) {
  bool known = false;
  for_each_point(curve, [&](std::size_t, const SideCurve& side, std::size_t i) {
    known = known || (side.*rate.all)[i].value.has_value();
  });
  return known;
}

/// Adds lines for each rate that some point of the curve has: the figures by which the rate is
/// divided, and the reasons why other points lack the rate.
void add_references(const Comparison& of, const ComparedCurve& curve, render::Facts& facts) {
  for (const Rate& rate : rates) {
    if (!is_known(curve, rate)) continue;
    SaidOfSides said;
    for_each_point(curve, [&](std::size_t s, const SideCurve& side, std::size_t i) {
      const Normalised& at = (side.*rate.all)[i];
      if (!at.value && has_no_link(rate, side, i)) return;
      said.add(of.sides[s].name, side.curve.points[i].data->ranks,
               render::escape(at.value ? at.against : "— " + at.missing));
    });
    said.append_to(facts, std::string{rate.key});
  }
}

/// Adds one line that names the rates that no point of any curve has, with the reasons: "FLOP/s of
/// peak: no datasheet ...; ...".
void add_unknown_rates(const Comparison& of, render::Facts& facts) {
  std::vector<std::string> parts;
  for (const Rate& rate : rates) {
    const auto known = [&](const ComparedCurve& curve) { return is_known(curve, rate); };
    if (std::ranges::any_of(of.curves, known)) continue;
    std::set<std::string> reasons;
    for (const ComparedCurve& curve : of.curves) {
      for_each_point(curve, [&](std::size_t, const SideCurve& side, std::size_t i) {
        if (!has_no_link(rate, side, i)) {
          reasons.insert(render::escape((side.*rate.all)[i].missing));
        }
      });
    }
    if (!reasons.empty()) {
      parts.push_back(fmt::format("{}: {}", rate.name, fmt::join(reasons, "; ")));
    }
  }
  if (!parts.empty()) facts.emplace_back("unknown", fmt::format("{}", fmt::join(parts, ". ")));
}

void add_why(const Comparison& of, std::size_t curve, render::Facts& facts) {
  SaidOfSides caveats;
  for (const Difference& at : of.differences) {
    if (at.curve != curve) continue;
    for (const std::string& sentence : sentences_of(of, at)) facts.emplace_back("why", sentence);
    for (const std::string& sentence : caveats_of(at)) {
      caveats.add(of.sides[at.side].name, at.ranks, sentence);
    }
  }
  caveats.append_to(facts, "causes");
}

/// Adds one line for each set of labels that makes points unfit as scaling results, over all
/// curves: "A, B: oversubscribed at 4 of all 12 points: ...".
void add_labels(const Comparison& of, render::Facts& facts) {
  std::map<std::string, std::pair<std::set<std::size_t>, std::size_t>> found;
  std::size_t points = 0;
  for (const ComparedCurve& curve : of.curves) {
    for_each_point(curve, [&](std::size_t s, const SideCurve& side, std::size_t i) {
      ++points;
      const std::vector<std::string> labels = results::unsound(side.curve.points[i].data->labels);
      if (labels.empty()) return;
      auto& [sides, count] = found[base::listed(labels)];
      sides.insert(s);
      ++count;
    });
  }
  for (const auto& [labels, where] : found) {
    std::vector<std::string> names;
    for (const std::size_t side : where.first) names.push_back(of.sides[side].name);
    facts.emplace_back("label",
                       fmt::format("{}: {} at {} of all {} points: these times are not those of "
                                   "the machine",
                                   fmt::join(names, ", "), labels, where.second, points));
  }
}

/// Adds the launches whose values are left out of a curve, with the reasons. Launches of one side
/// that lack the same rank counts for the same reason share a line.
void add_left_out(const Comparison& of, const ComparedCurve& curve, render::Facts& facts) {
  for (std::size_t s = 0; s < curve.sides.size(); ++s) {
    if (!curve.sides[s]) continue;
    SaidOfSides said;
    for (const merge::LeftOut& at : curve.sides[s]->joined->left_out) {
      said.add(fmt::format("{}, {}", of.sides[s].name,
                           render::escape_up_to(at.at.run->file, most_of_file)),
               at.at.point->data->ranks, render::escape(at.reason));
    }
    said.append_to(facts, "left out");
  }
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

/// Returns a table of the sides: number of launches, time at which the first one began, files, and
/// machines if these differ.
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

/// Returns a table with the points of all sides of a curve.
render::DocumentTable points_table(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  std::vector<const PointReport*> points;
  std::vector<render::Value> sides, launches, efficiencies, notes;
  for_each_point(curve, [&](std::size_t s, const SideCurve& side, std::size_t i) {
    points.push_back(&side.curve.points[i]);
    sides.emplace_back(of.sides[s].name);
    launches.emplace_back(launches_cell(side, i));
    const auto efficiency = render::efficiency_of(*points.back());
    efficiencies.push_back(
        render::value_json(efficiency ? with_interval(*efficiency, "%", "") : ""));
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
    // Only marks the row: the title of the curve names the settings that differ between the sides.
    add("", marks_of(of, at.curve, at.side, at.ranks).empty() ? "" : "UNLIKE", Unit::text);
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

/// Returns a table of the facts in which the machines differ.
render::DocumentTable machines_table(const Comparison& of) {
  render::DocumentTable table{.title = "what differs between the machines"};
  for (const MachineDifference& at : of.machines) {
    std::vector<render::Cell> cells{{"", render::escape_up_to(at.name, most_of_value), Unit::text}};
    for (std::size_t s = 0; s < at.values.size(); ++s) {
      const std::string_view value = at.values[s].empty() ? render::undefined : at.values[s];
      cells.push_back({of.sides[s].name, render::escape_up_to(value, most_of_value), Unit::text});
    }
    add_row(table, std::move(cells));
  }
  return table;
}

render::DocumentTable gate_table(const Comparison& of) {
  return differences_table(of, std::nullopt,
                           fmt::format("gate {}, point by point", render::percent(of.gate->loss)));
}

/// Explains how to read the numbers, one sentence per line.
std::vector<std::string> comparison_key(const Comparison& of) {
  std::vector<std::string> key{
      "Differences: of medians over launches; 95% intervals: Welch's t on launches' own values, "
      "from 3 launches per side on.",
      "Throughput as a ratio, efficiency in percentage points; each interval is of its point "
      "alone; !: does not hold the value.",
      "Why: what each cause takes of the side's step beyond what it takes of " +
          of.sides.front().name + "'s, from traced steps; below 0.5 in other causes.",
      "Traced steps differ: what the traced steps cannot explain of those measured; no cause."};
  if (of.gate) {
    key.emplace_back(
        "Gate: one-sided Welch tests at 2.5%, as the 95% intervals, corrected by Holm for the "
        "number of points.");
  }
  return key;
}

/// Returns `document`, which holds the opening lines of the report, followed by all parts of the
/// comparison except the gate's table.
render::Document comparison_document(const Comparison& of, render::Document document) {
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

std::vector<std::string> overall_sentences(const Comparison& of) {
  std::vector<std::string> sentences;
  for (const Overall& at : of.overall) sentences.push_back(overall_sentence(of, at));
  return sentences;
}

render::Facts curve_facts(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  render::Facts facts{
      {"baseline", curve.baseline ? base::counted(*curve.baseline, "rank") + " of each side's own"
                                  : "none: " + curve.no_baseline}};
  add_why(of, c, facts);
  add_references(of, curve, facts);
  add_left_out(of, curve, facts);
  return facts;
}

render::Facts comparison_facts(const Comparison& of) {
  render::Facts facts;
  for (const std::string& line : unlike_lines(of)) facts.emplace_back("UNLIKE", line);
  for (const OnlyOn& at : of.only) facts.emplace_back("only", only_sentence(of, at));
  add_labels(of, facts);
  for (const std::string& warning : of.warnings) {
    facts.emplace_back("WARNING", render::escape(warning));
  }
  add_unknown_rates(of, facts);
  return facts;
}

std::string render_text(const Comparison& comparison) {
  render::Document opening;
  render::append_sentences(opening, overall_sentences(comparison));
  render::Document document = comparison_document(comparison, std::move(opening));
  if (comparison.gate) {
    render::append(document, gate_table(comparison));
    document.emplace_back(render::Heading{gate_sentence(comparison)});
  }
  return to_text(document, unlimited);
}

std::string render_markdown(const Comparison& comparison) {
  render::Document opening{render::Heading{"Comparison"}};
  if (comparison.refused) {
    opening.emplace_back(render::Paragraph{"Not compared: the sides measured different things."});
  }
  render::append_sentences(opening, overall_sentences(comparison));
  if (comparison.gate) {
    opening.emplace_back(render::Paragraph{gate_sentence(comparison)});
    render::append(opening, gate_table(comparison));
  }
  return render::to_markdown(comparison_document(comparison, std::move(opening)));
}

}  // namespace isoscale::analysis::compare
