// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "analysis/advice/findings.hpp"
#include "analysis/catalog/run_index.hpp"
#include "analysis/merge/join_launches.hpp"
#include "analysis/render/document_and_metrics.hpp"

/// Declares parts of reports: the summary, the findings and the tables of an index of runs.
namespace isoscale::analysis::render {

// The following declare the summary, which fits on one screen, and its tables.

/// Returns the content of the summary: the machine, failed and skipped points, the scaling and the
/// largest losses of each curve, the most severe findings and the first warnings.
[[nodiscard]] Document answer(const merge::Report& report);
/// Returns answer() followed by the commands that show more of the report.
[[nodiscard]] Document summary(const merge::Report& report);

/// Returns the meanings of the summary's columns; empty if the summary has no tables.
[[nodiscard]] Document summary_legend(const RunReport& run);

/// The largest number of rows of the table of curves, and of the table of micro-benchmarks.
inline constexpr std::size_t most_summary_rows = 16;

struct CurvesSummary {
  std::string sentence;  ///< a sentence on the efficiencies; "" if there is no curve
  /// The parts that the titles of all curves share: "tiny, f32, strong scaling".
  std::string common;
  DocumentTable table;       ///< a row for each curve, at most most_summary_rows
  std::size_t left_out = 0;  ///< curves without a row
  /// Short names of curves, by title: "dp", "dp, bucket=1MiB".
  std::map<std::string, std::string> names;
};
/// Returns a table with a row for each curve. A row shows one point, chosen by telling_point(),
/// which is the baseline only if the curve has no other point.
[[nodiscard]] CurvesSummary summarise_curves(const merge::Report& report);

struct BenchesSummary {
  DocumentTable table;  ///< at most most_summary_rows
  std::size_t left_out = 0;
};
/// Returns the main figures of each micro-benchmark, from the point that telling_point() chooses.
[[nodiscard]] BenchesSummary summarise_benches(const merge::Report& report);

/// These functions return the meanings of the columns of the tables of curves and of
/// micro-benchmarks.
[[nodiscard]] std::vector<Note> curve_legend();
[[nodiscard]] std::vector<Note> bench_legend();

// The following declare the findings.

/// Returns the indices of the findings to show, in ascending order: the worst finding of each rule
/// about hardware, even if these are more than `most`, and then the first other findings, until
/// there are `most` in all.
[[nodiscard]] std::vector<std::size_t> shown_findings(std::span<const advice::Finding> findings,
                                                      std::size_t most);

/// Returns the points that some or all rules for findings did not judge, with the reasons: "4 ranks
/// of dp, tp (oversubscribed)" for workloads dp and tp; "" if there are none. It is not escaped.
[[nodiscard]] std::string left_out_text(std::span<const advice::NotJudged> left_out);

/// Returns the findings with their evidence, next step, rule and source, and the points to which
/// the rules were not applied. The document is empty if there are neither findings nor such points.
[[nodiscard]] Document findings_document(std::span<const advice::Finding> findings,
                                         std::span<const advice::NotJudged> left_out = {});

/// Returns one object for each entry of `left_out`, with the keys curve, ranks (a list) and why.
/// It is defined in render_json.cpp, with the other JSON.
[[nodiscard]] nlohmann::ordered_json left_out_json(std::span<const advice::NotJudged> left_out);

// The following declare the tables of an index of runs.

/// Says if the rest of the report refers to the runs as launch 1, 2, ... in the order given.
enum class Numbered : std::uint8_t { no, as_launches };

/// Returns the headline of an index: "6 launches on 3 machines, 2025-03-01 to 2025-04-02", or "6
/// runs on ..." if the runs are not numbered as launches.
[[nodiscard]] std::string index_headline(const catalog::Index& index, Numbered numbered);

/// Returns the tables of one machine: its runs, its experiments, its micro-benchmarks, and the
/// trend of the throughput of experiments that at least two runs measured. A table may be empty.
[[nodiscard]] std::vector<DocumentTable> index_tables(const catalog::Index& index,
                                                      const catalog::IndexMachine& machine,
                                                      Numbered numbered);

/// These functions return the metrics of one experiment of a run, and of the throughput of one
/// experiment over several runs.
[[nodiscard]] Metrics<catalog::IndexExperiment> index_experiment_metrics();
[[nodiscard]] Metrics<catalog::IndexTrend> index_trend_metrics();

/// Returns a warning for each file from which no run could be read.
[[nodiscard]] Facts index_warnings(const catalog::Index& index);

/// Returns sentences that explain the columns of index_tables().
[[nodiscard]] std::vector<std::string> index_key();

}  // namespace isoscale::analysis::render
