// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/compare/comparison.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"

/// Comparisons as text; no renderer computes anything that another could disagree with.
namespace isoscale::analysis {

[[nodiscard]] std::string render_text(const Comparison& comparison);
[[nodiscard]] std::string render_json(const Comparison& comparison);
/// A row for each point of each side, with what it is against the first side.
[[nodiscard]] std::string render_csv(const Comparison& comparison);
/// A test case for each difference; of what is unlike, and so was refused, an error.
[[nodiscard]] std::string render_junit(const Comparison& comparison);
/// Begins with the gate's table, for a comment under a change.
[[nodiscard]] std::string render_markdown(const Comparison& comparison);

/// The comparison as docs/comparing.md describes it. Texts of files are as they stand there: dump
/// it as ASCII, with bytes that are not UTF-8 replaced.
[[nodiscard]] nlohmann::ordered_json compare_json(const Comparison& comparison);

// The pieces of which text and markdown are arranged; all text is escaped.

/// Sentences on each side over all points; the first lines of every comparison.
[[nodiscard]] std::vector<std::string> overall_sentences(const Comparison& of);
/// Launches, dates and files of the sides, and their machines where these differ.
[[nodiscard]] TitledTable sides_table(const Comparison& of);
/// The differences between the machines; no rows where there are none.
[[nodiscard]] TitledTable machines_table(const Comparison& of);
/// Points of all sides of a curve, differences, and rates over what the machines have. A table
/// without rows is left out.
[[nodiscard]] std::vector<TitledTable> curve_tables(const Comparison& of, std::size_t curve);
/// Causes of the differences, what rates were divided by, and launches that do not count.
[[nodiscard]] Facts curve_facts(const Comparison& of, std::size_t curve);
/// The differing settings, the points of one side alone, labels, warnings and missing rates.
[[nodiscard]] Facts comparison_facts(const Comparison& of);
/// Title and "unlike: dtype" of a curve.
[[nodiscard]] std::string curve_title(const Comparison& of, std::size_t curve);
/// A row a point. Only with a gate.
[[nodiscard]] TitledTable gate_table(const Comparison& of);
/// Explains how to read the numbers, one sentence a line.
[[nodiscard]] std::vector<std::string> comparison_key(const Comparison& of);

// The sentences of a comparison; all text is escaped.

/// In hundredths: "11.2% ± 2.0"; "11.2% (9.0 to 14.1)" where the interval lies unevenly; the value
/// alone without one. `sign` stands behind the value, `word` behind half the width.
[[nodiscard]] std::string with_interval(const statistics::Located& at, std::string_view sign,
                                        std::string_view word);

/// "B's efficiency is 11.2 ± 2.0 points lower at 64 ranks: 8.1 dp transfer, 2.0 imbalance"; where
/// that is not established it says so, and that the causes are uncertain. "" at the baseline and
/// without one.
[[nodiscard]] std::string efficiency_sentence(const Comparison& of, const Difference& at);
/// "B's throughput is 10.1% lower at 64 ranks (8.0% to 12.2%)". With a gate it says what the gate
/// decided and by how much: "B's throughput is at least 5.0% lower at 64 ranks, p = 0.004: ...".
[[nodiscard]] std::string throughput_sentence(const Comparison& of, const Difference& at);
/// "B's step is 11.3% longer at 64 ranks, 41.2 ms against 37.0 ms: 8.0% dp transfer, ..."; "as
/// measured, not established: ..." where no difference of throughput is. "" where both are as long.
[[nodiscard]] std::string step_sentence(const Comparison& of, const Difference& at);
/// All of these that there are.
[[nodiscard]] std::vector<std::string> sentences_of(const Comparison& of, const Difference& at);
/// Sentences on what could not be explained, or not be separated.
[[nodiscard]] std::vector<std::string> caveats_of(const Difference& at);

/// "-10.1%"; of a ratio to 1.
[[nodiscard]] std::string change_text(double ratio);
/// "-12.2% to -8.0%", "—" without an interval; " !" behind one that does not hold its value.
[[nodiscard]] std::string change_interval(const statistics::Located& ratio);
/// "-11.2", "-13.2 to -9.2": points of efficiency.
[[nodiscard]] std::string points_text(const std::optional<statistics::Located>& difference);
[[nodiscard]] std::string points_interval(const std::optional<statistics::Located>& difference);

/// The gate as a whole: "FAILED", "passed", "undecided".
[[nodiscard]] std::string gate_word(const Gate& gate);
/// "gate 5.0%: FAILED: 1 regression of 4 points tested, ..."
[[nodiscard]] std::string gate_sentence(const Comparison& of);

/// "dp, tiny, ..., 4 ranks only in A: not measured on B".
[[nodiscard]] std::string only_sentence(const Comparison& of, const OnlyOn& only);

/// Which files a side is of: "a1.h5, a2.h5 and 3 more".
[[nodiscard]] std::string files_text(const Side& side);

/// "new is 12% slower than old over all 9 points, between 9% and 15%; mostly dp transfer". Where no
/// difference is established it says so and gives the size as measured.
[[nodiscard]] std::string overall_sentence(const Comparison& of, const Overall& at);

}  // namespace isoscale::analysis
