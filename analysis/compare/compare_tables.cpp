// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/compare_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "analysis/compare/sentences.hpp"
#include "analysis/compare/unlike_lines.hpp"
#include "analysis/labels.hpp"
#include "analysis/render/sentences.hpp"
#include "analysis/render/text_escape.hpp"
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

/// Calls visit(side number, its curve, place of the point) for each side that has the point.
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

std::string marks_text(const Comparison& of, std::size_t curve, std::size_t side, int ranks) {
  std::vector<std::string> marks;
  for (const std::string& mark : marks_of(of, curve, side, ranks)) {
    marks.push_back(escape_up_to(mark, most_of_value));
  }
  return marks.empty() ? "" : fmt::format("UNLIKE {}", fmt::join(marks, ", "));
}

std::string notes_text(const Comparison& of, std::size_t curve, std::size_t side,
                       const PointReport& point) {
  const std::string marks = marks_text(of, curve, side, point.data->ranks);
  const std::string labels = notes(point);
  return labels.empty() || marks.empty() ? labels + marks : labels + "; " + marks;
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
                     std::to_string(side.joined->launches[i].size()), step_time(point),
                     interval(point), throughput(point), flops_per_rank(point),
                     efficiency_cell(point), notes_text(of, c, s, point)},
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
                   std::string{name(at.verdict)}, marks_text(of, c, at.side, at.ranks)},
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

/// Sentences of points of several sides, those that say the same in one: "A, B: ... (1, 2 ranks)".
class SaidOfSides {
 public:
  void add(const std::string& side, int ranks, const std::string& sentence) {
    said_[sentence][side].push_back(ranks);
  }
  void append_to(Facts& facts, const std::string& key) const {
    for (const auto& [sentence, of_sides] : said_) {
      std::map<std::vector<int>, std::vector<std::string>> alike;
      for (const auto& [side, ranks] : of_sides) alike[ranks].push_back(side);
      for (const auto& [ranks, sides] : alike) {
        facts.emplace_back(
            key, fmt::format("{}: {} ({})", fmt::join(sides, ", "), sentence, ranks_text(ranks)));
      }
    }
  }

 private:
  std::map<std::string, std::map<std::string, std::vector<int>>> said_;
};

/// What each rate was divided by, or why it was not.
void add_references(const Comparison& of, const ComparedCurve& curve, Facts& facts) {
  const auto add = [&](const std::string& key, std::vector<Normalised> SideCurve::*all) {
    SaidOfSides said;
    for (const int ranks : ranks_of(curve)) {
      for_each_side(curve, ranks, [&](std::size_t s, const SideCurve& side, std::size_t i) {
        const Normalised& at = (side.*all)[i];
        said.add(of.sides[s].name, ranks, escape(at.value ? at.against : "— " + at.missing));
      });
    }
    said.append_to(facts, key);
  };
  add("peak", &SideCurve::of_peak);
  add("link", &SideCurve::per_link);
  add("watt", &SideCurve::per_watt);
}

void add_why(const Comparison& of, std::size_t curve, Facts& facts) {
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

void add_labels(const Comparison& of, const ComparedCurve& curve, Facts& facts) {
  Sentences labels;
  for (const int ranks : ranks_of(curve)) {
    for_each_side(curve, ranks, [&](std::size_t s, const SideCurve& side, std::size_t i) {
      const PointReport& point = side.curve.points[i];
      const std::vector<std::string> found = unsound(point.data->labels);
      if (!found.empty()) {
        labels.add(point, fmt::format("{}: {}: these times are not those of the machine",
                                      of.sides[s].name, fmt::join(found, ", ")));
      }
    });
  }
  labels.append_to(facts, "label");
}

void add_left_out(const Comparison& of, const ComparedCurve& curve, Facts& facts) {
  for (std::size_t s = 0; s < curve.sides.size(); ++s) {
    if (!curve.sides[s]) continue;
    Sentences reasons;
    for (const LeftOut& at : curve.sides[s]->joined->left_out) {
      reasons.add(*at.at.point,
                  fmt::format("{}, {}: {}", of.sides[s].name,
                              escape_up_to(at.at.run->file, most_of_value), escape(at.reason)));
    }
    reasons.append_to(facts, "left out");
  }
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
                    .columns = {{"side", Align::left},
                                {"launches"},
                                {"began", Align::left},
                                {"files", Align::left}},
                    .rows = {}};
  for (const Side& side : of.sides) {
    std::string first = side.runs.front().data->created;
    for (const RunReport& run : side.runs) first = std::min(first, run.data->created);
    table.rows.push_back({.cells = {side.name, std::to_string(side.runs.size()),
                                    escape_up_to(first, most_of_value), files_text(side)},
                          .tail = ""});
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

Facts curve_facts(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  Facts facts;
  facts.emplace_back("baseline", curve.baseline
                                     ? ranks_text({*curve.baseline}) + " of each side's own"
                                     : "none: " + curve.no_baseline);
  add_why(of, c, facts);
  add_references(of, curve, facts);
  add_labels(of, curve, facts);
  add_left_out(of, curve, facts);
  return facts;
}

Facts comparison_facts(const Comparison& of) {
  Facts facts;
  for (const std::string& line : unlike_lines(of)) facts.emplace_back("UNLIKE", line);
  for (const OnlyOn& at : of.only) facts.emplace_back("only", only_sentence(of, at));
  for (const std::string& warning : of.warnings) {
    facts.emplace_back("WARNING", escape(warning));
  }
  return facts;
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
                   change_interval(at.throughput), std::string{name(at.verdict)},
                   marks_text(of, at.curve, at.side, at.ranks)},
         .tail = ""});
  }
  return table;
}

std::vector<std::string> comparison_key(const Comparison& of) {
  std::vector<std::string> key{
      "Differences: of medians over launches; 95% intervals: Welch's t on launches' own values, "
      "from 3 launches a side on.",
      "Throughput as a ratio, efficiency in percentage points; each interval is of its point "
      "alone; !: does not hold the value.",
      "Why: what each cause takes of the side's step beyond what it takes of " +
          of.sides.front().name + "'s, from traced steps; below 0.5 in other causes.",
      "Traced steps differ: what the traced steps cannot explain of those measured; no cause."};
  if (of.gate) {
    key.push_back(
        "Gate: one-sided Welch tests at 2.5%, as the 95% intervals, corrected by Holm for the number "
        "of points.");
  }
  return key;
}

}  // namespace isoscale::analysis
