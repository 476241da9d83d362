// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/text_and_markdown.hpp"

/// Renders comparisons. No renderer computes numbers, so that none can disagree with another.
namespace isoscale::analysis::compare {

[[nodiscard]] std::string render_text(const Comparison& comparison);
[[nodiscard]] std::string render_json(const Comparison& comparison);
/// Returns CSV with a row for each point of each side, with its differences from the first side.
[[nodiscard]] std::string render_csv(const Comparison& comparison);
/// Returns JUnit XML with a test case for each difference. If the comparison was refused, it has an
/// error for each setting in which the sides differ. With a gate, it also has a case for each curve
/// or point that only the first side has.
[[nodiscard]] std::string render_junit(const Comparison& comparison);
/// Returns Markdown that begins with the gate's table, for a comment under a change.
[[nodiscard]] std::string render_markdown(const Comparison& comparison);

/// Returns the JSON that docs/comparing.md describes. Texts of files are not escaped: dump it as
/// ASCII, with bytes that are not UTF-8 replaced.
[[nodiscard]] nlohmann::ordered_json compare_json(const Comparison& comparison);

// The parts of a comparison that text and Markdown arrange; all text is escaped.

/// Returns sentences on each side over all points, the first lines of every comparison.
[[nodiscard]] std::vector<std::string> overall_sentences(const Comparison& of);
/// Returns launches, dates and files of the sides, and their machines where these differ.
[[nodiscard]] render::TitledTable sides_table(const Comparison& of);
/// Returns the points of all sides of a curve.
[[nodiscard]] render::TitledTable points_table(const Comparison& of, std::size_t curve);
/// Returns the causes of the differences, the figures that rates were divided by, and the launches
/// that do not count.
[[nodiscard]] render::Facts curve_facts(const Comparison& of, std::size_t curve);
/// Returns the differing settings, the points that only one side has, labels, warnings and missing
/// rates.
[[nodiscard]] render::Facts comparison_facts(const Comparison& of);
/// Returns the title of a curve, with "unlike: dtype" where settings differ.
[[nodiscard]] std::string curve_title(const Comparison& of, std::size_t curve);
/// Explains how to read the numbers, one sentence per line.
[[nodiscard]] std::vector<std::string> comparison_key(const Comparison& of);

// The sentences of a comparison; all text is escaped.

/// Returns a value in hundredths with its interval: "11.2% ± 2.0", or "11.2% (9.0 to 14.1)" where
/// the interval is not symmetric; only the value if there is no interval. `sign` follows the value,
/// and `word` follows the half-width.
[[nodiscard]] std::string with_interval(const statistics::Located& at, std::string_view sign,
                                        std::string_view word);

/// Returns "B's efficiency is 11.2 ± 2.0 points lower at 64 ranks: 8.1 dp transfer, 2.0 imbalance".
/// If the difference is not established, the sentence says so and calls the causes uncertain. "" at
/// the baseline, and without a baseline.
[[nodiscard]] std::string efficiency_sentence(const Comparison& of, const Difference& at);
/// Returns "B's throughput is 10.1% lower at 64 ranks (8.0% to 12.2%)". With a gate it states the
/// gate's verdict and limit: "B's throughput is at least 5.0% lower at 64 ranks, p = 0.004: ...".
[[nodiscard]] std::string throughput_sentence(const Comparison& of, const Difference& at);
/// Returns "B's step is 11.3% longer at 64 ranks, 41.2 ms against 37.0 ms: 8.0% dp transfer, ...";
/// "as measured, not established: ..." where no difference of throughput is established. "" where
/// both are equally long.
[[nodiscard]] std::string step_sentence(const Comparison& of, const Difference& at);
/// Returns the three sentences above, without empty ones.
[[nodiscard]] std::vector<std::string> sentences_of(const Comparison& of, const Difference& at);
/// Returns sentences on what could not be explained or separated.
[[nodiscard]] std::vector<std::string> caveats_of(const Difference& at);

/// Returns "-10.1%", the difference of a ratio from 1.
[[nodiscard]] std::string change_text(double ratio);
/// Returns "-12.2% to -8.0%", "—" without an interval; " !" follows an interval that does not hold
/// its value.
[[nodiscard]] std::string change_interval(const statistics::Located& ratio);
/// These return a difference in points of efficiency, "-11.2", and its interval, "-13.2 to -9.2".
[[nodiscard]] std::string points_text(const std::optional<statistics::Located>& difference);
[[nodiscard]] std::string points_interval(const std::optional<statistics::Located>& difference);

/// Returns the gate's overall result: "FAILED", "passed", "undecided".
[[nodiscard]] std::string gate_word(const Gate& gate);
/// Returns "gate 5.0%: FAILED: 1 regression of 4 points tested, ..."
[[nodiscard]] std::string gate_sentence(const Comparison& of);

/// Returns "dp, tiny, ..., 4 ranks only in A: not measured on B".
[[nodiscard]] std::string only_sentence(const Comparison& of, const OnlyOn& only);

/// Returns the files of a side: "a1.h5, a2.h5 and 3 more".
[[nodiscard]] std::string files_text(const Side& side);

/// Returns "new is 12% slower than old over all 9 points, between 9% and 15%; mostly dp transfer".
/// If no difference is established, the sentence says so and gives the measured size.
[[nodiscard]] std::string overall_sentence(const Comparison& of, const Overall& at);

}  // namespace isoscale::analysis::compare
