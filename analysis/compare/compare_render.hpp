// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/compare/comparison.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"

/// Renders comparisons as text, JSON, CSV, JUnit XML and Markdown. Renderers compute no numbers
/// themselves, so their outputs always agree.
namespace isoscale::analysis::compare {

[[nodiscard]] std::string render_text(const Comparison& comparison);
[[nodiscard]] std::string render_json(const Comparison& comparison);
/// Returns CSV with a row for each point of each side, with its differences from the first side.
[[nodiscard]] std::string render_csv(const Comparison& comparison);
/// Returns JUnit XML with a test case for each difference. If the comparison was refused, it has an
/// error for each setting that differs. With a gate (`--gate`, a limit on the loss of throughput),
/// it also has a case for each curve or point that the first side has and another side lacks.
[[nodiscard]] std::string render_junit(const Comparison& comparison);
/// Returns Markdown for a comment on a pull request. Below its title are the overall results and,
/// if there is a gate, its result and a table of its verdicts.
[[nodiscard]] std::string render_markdown(const Comparison& comparison);

/// Returns the JSON that docs/comparing.md describes. Texts that come from result files are not
/// escaped, so the caller must dump the JSON as ASCII and replace bytes that are not UTF-8.
[[nodiscard]] nlohmann::ordered_json compare_json(const Comparison& comparison);

// The functions below return the parts of the text and Markdown reports; all text is escaped.

/// Returns one sentence for each side except the first: its difference from the first side over all
/// points. The text and Markdown reports begin with these.
[[nodiscard]] std::vector<std::string> overall_sentences(const Comparison& of);
/// Returns lines about a curve: its baseline, the causes of the differences, the figures that rates
/// were divided by, and the launches that were left out.
[[nodiscard]] render::Facts curve_facts(const Comparison& of, std::size_t curve);
/// Returns lines about all curves: the settings that differ between the sides, the points that only
/// one side has, labels, warnings and missing rates.
[[nodiscard]] render::Facts comparison_facts(const Comparison& of);
/// Returns the title of a curve, with "[UNLIKE dtype]" if the sides differ in the setting dtype.
[[nodiscard]] std::string curve_title(const Comparison& of, std::size_t curve);

// The functions below return sentences and parts of sentences; all text is escaped.

/// Returns a value multiplied by 100, with its interval: "11.2% ± 2.0", or "11.2% (9.0 to 14.1)" if
/// the value is not in the middle of the interval. Returns only the value if it has no interval.
/// `sign` ("%" or "") is put after the value. `word` (" points" or "") is put after the half-width,
/// or after `sign` if no half-width is shown.
[[nodiscard]] std::string with_interval(const statistics::Located& at, std::string_view sign,
                                        std::string_view word);

/// Returns "B's efficiency is 11.2 ± 2.0 points lower at 64 ranks: 8.1 dp transfer, 2.0 imbalance".
/// If the difference is not established, the sentence says so and calls the causes uncertain.
/// Returns "" at the baseline and if there is no baseline.
[[nodiscard]] std::string efficiency_sentence(const Comparison& of, const Difference& at);
/// Returns "B's throughput is 10.1% lower at 64 ranks (8.0% to 12.2%)". With a gate, the sentence
/// states the gate's verdict and limit: "B's throughput is at least 5.0% lower at 64 ranks, p =
/// 0.004: ...".
[[nodiscard]] std::string throughput_sentence(const Comparison& of, const Difference& at);
/// Returns the side's work per step divided by the first side's at this point; 1 if both are equal.
[[nodiscard]] double work_ratio(const Comparison& of, const Difference& at);
/// Returns "B's step is 11.3% longer at 64 ranks, 41.2 ms against 37.0 ms: 8.0% dp transfer, ...".
/// Where the work differs: "..., 41.2 ms against 37.0 ms (18.5 ms scaled to 2x the work)".
/// It begins with "as measured, not established:" if no difference in throughput is established.
/// Returns "" if both steps are equally long, in the digits that are shown.
[[nodiscard]] std::string step_sentence(const Comparison& of, const Difference& at);
/// Returns the results of throughput_sentence(), efficiency_sentence() and step_sentence(), in this
/// order, without empty ones.
[[nodiscard]] std::vector<std::string> sentences_of(const Comparison& of, const Difference& at);
/// Returns sentences on the gaps in the explanation of a difference: the reason why a difference in
/// efficiency has no causes, and the times that could not be divided among causes.
[[nodiscard]] std::vector<std::string> caveats_of(const Difference& at);

/// Returns the difference between a ratio and 1: "-10.1%".
[[nodiscard]] std::string change_text(double ratio);
/// Returns the interval of a ratio as changes, "-12.2% to -8.0%", or "—" without an interval. " !"
/// is added if the value lies outside its interval.
[[nodiscard]] std::string change_interval(const statistics::Located& ratio);
/// Returns a difference in points of efficiency: "-11.2". The function below returns its interval:
/// "-13.2 to -9.2". Both return "—" for an absent value. As in change_interval(), " !" marks a
/// value outside its interval.
[[nodiscard]] std::string points_text(const std::optional<statistics::Located>& difference);
[[nodiscard]] std::string points_interval(const std::optional<statistics::Located>& difference);

/// Returns the gate's overall result: "FAILED", "passed", "undecided".
[[nodiscard]] std::string gate_word(const Gate& gate);
/// Returns the gate's result and the number of points with each verdict: "gate 5.0%: FAILED: of 4
/// points: 1 regression, 3 passed".
[[nodiscard]] std::string gate_sentence(const Comparison& of);

/// Returns "dp, tiny, ..., 4 ranks only in A: not measured on B" for a point that one side lacks.
/// Without the rank count, the sentence is about a whole curve.
[[nodiscard]] std::string only_sentence(const Comparison& of, const OnlyOn& only);

/// Returns the files of a side, at most four by name: "a1.h5, a2.h5, a3.h5, a4.h5 and 3 more".
[[nodiscard]] std::string files_text(const Side& side);

/// Returns "new is 12% slower than old over 9 points, between 9% and 15%; mostly dp transfer". If
/// the difference is not established, the sentence says so and gives the measured size.
[[nodiscard]] std::string overall_sentence(const Comparison& of, const Overall& at);

/// Calls visit(side's number, the side's curve, index of the point) for each point of all sides, in
/// ascending order of ranks.
template <class Visit>
void for_each_point(const ComparedCurve& curve, const Visit& visit) {
  std::set<std::tuple<int, std::size_t, std::size_t>> places;  // ranks, side, index
  for (std::size_t s = 0; s < curve.sides.size(); ++s) {
    if (!curve.sides[s]) continue;
    const auto& points = curve.sides[s]->curve.points;
    for (std::size_t i = 0; i < points.size(); ++i) places.emplace(points[i].data->ranks, s, i);
  }
  for (const auto& [ranks, s, i] : places) visit(s, *curve.sides[s], i);
}

}  // namespace isoscale::analysis::compare
