// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/differences.hpp"
#include "analysis/compare/sides.hpp"
#include "analysis/render/text.hpp"
#include "base/text.hpp"
#include "results/records/point_facts.hpp"

namespace isoscale::analysis::compare {
namespace {

constexpr std::size_t most_of_file = 60;  ///< characters of a file's name that are shown

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
        if (!has_no_link(rate, side, i))
          reasons.insert(render::escape((side.*rate.all)[i].missing));
      });
    }
    if (!reasons.empty())
      parts.push_back(fmt::format("{}: {}", rate.name, fmt::join(reasons, "; ")));
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

}  // namespace

std::vector<std::string> overall_sentences(const Comparison& of) {
  std::vector<std::string> sentences;
  for (const Overall& at : of.overall) sentences.push_back(overall_sentence(of, at));
  return sentences;
}

render::Facts curve_facts(const Comparison& of, std::size_t c) {
  const ComparedCurve& curve = of.curves[c];
  render::Facts facts;
  facts.emplace_back("baseline",
                     curve.baseline ? base::counted(*curve.baseline, "rank") + " of each side's own"
                                    : "none: " + curve.no_baseline);
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
        "Gate: one-sided Welch tests at 2.5%, as the 95% intervals, corrected by Holm for the "
        "number "
        "of points.");
  }
  return key;
}

}  // namespace isoscale::analysis::compare
