// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/render.hpp"

#include <fmt/format.h>

#include "analysis/causes/cause_tables.hpp"
#include "analysis/devices/device_tables.hpp"
#include "analysis/findings/findings.hpp"
#include "analysis/findings/findings_text.hpp"
#include "analysis/index/index_tables.hpp"
#include "analysis/launches/joined_tables.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/node_cells.hpp"
#include "analysis/render/text_escape.hpp"
#include "analysis/render/text_parts.hpp"
#include "analysis/render/text_table.hpp"
#include "analysis/rows/bench_tables.hpp"
#include "analysis/rows/infer.hpp"
#include "analysis/rows/serve.hpp"

namespace isoscale::analysis {
namespace {

std::string scaling_table(const Curve& curve) {
  std::vector<Column> columns{
      {"ranks"},        {"mesh", Align::left},    {"step time"},
      {"±95%"},         {throughput_unit(curve)}, {"speed-up"},
      {"FLOP/s/rank"},  {"efficiency"},           {efficiency_heading(), Align::left},
      {"", Align::left}};
  const bool with_nodes = spans_nodes(curve);
  if (with_nodes) columns.insert(columns.begin() + 1, {"nodes", Align::left});
  std::vector<Row> rows;
  for (const PointReport& point : curve.points) {
    Row row{.cells = {std::to_string(point.data->ranks)}, .tail = excuse(point)};
    if (with_nodes) row.cells.push_back(nodes_cell(point));
    row.cells.push_back(mesh::to_string(point.data->mesh));
    if (row.tail.empty()) {
      row.cells.insert(row.cells.end(),
                       {step_time(point), interval(point), throughput(point), fixed(point.speedup),
                        flops_per_rank(point), percent(point.efficiency),
                        point.efficiency ? efficiency_bar(*point.efficiency) : "", notes(point)});
    }
    rows.push_back(std::move(row));
  }
  return table(columns, rows);
}

std::string breakdown_table(const Curve& curve) {
  std::vector<Column> columns{{"ranks"}};
  for (const Category& category : categories()) {
    columns.push_back({fmt::format("{} {}", category.glyph, category.name)});
  }
  columns.push_back({"hidden"});
  columns.push_back({"tracing"});
  columns.push_back({"where a step went", Align::left});
  std::vector<Row> rows;
  for (const PointReport* const point : traced_points(curve)) {
    Row row{.cells = {std::to_string(point->data->ranks)}, .tail = ""};
    for (const Category& category : categories()) {
      row.cells.push_back(share(*point, category.seconds));
    }
    row.cells.push_back(share(*point, &Breakdown::hidden_communication));
    row.cells.push_back(overhead_text(point->instrumentation_overhead));
    row.cells.push_back(breakdown_bar(*point->breakdown.mean));
    rows.push_back(row);
  }
  return table(columns, rows);
}

std::string curve_text(const Curve& curve) {
  if (const Facts why = all_skipped(curve); !why.empty()) {
    return heading(escape(curve.title)) + lines(why);
  }
  std::string text = heading(escape(curve.title)) + scaling_table(curve);
  if (!traced_points(curve).empty()) text += "\n" + breakdown_table(curve);
  for (const TitledTable& part : cause_tables(curve)) text += "\n" + titled(part);
  const Facts facts = remarks(curve);
  if (!facts.empty()) text += "\n" + lines(facts);
  return text;
}

std::string tables_text(const std::vector<TitledTable>& tables) {
  std::string text;
  for (const TitledTable& part : tables) {
    if (&part != &tables.front()) text += "\n";
    text += part.title + "\n" + table(part.columns, part.rows);
  }
  return text;
}

/// Nothing, where no device was looked at.
std::string devices_text(const Curve& curve) {
  const std::vector<TitledTable> tables = device_tables(curve);
  const Facts facts = device_remarks(curve);
  std::string text = tables.empty() ? "" : "\n" + tables_text(tables);
  if (!facts.empty()) text += "\n" + lines(facts);
  return text;
}

std::string bench_text(const PointReport& point) {
  std::string text = heading(bench_title(point));
  const std::string why = excuse(point);
  if (!why.empty()) text += "  " + why + "\n";
  text += tables_text(bench_tables(point));
  if (const Facts facts = bench_remarks(point); !facts.empty()) text += "\n" + lines(facts);
  return text;
}

std::string bench_key() {
  return "\nTime of one call: median over plays, each as long as its slowest rank, and 95% "
         "interval;"
         " p99 of single calls.\n"
         "algbw and busbw as nccl-tests defines them; of ceiling: of the best of this run;"
         " hidden: share of the shorter part.\n"
         "Slow pairs: below their class's median by 3.5 scaled median deviations and 10%, or by a"
         " factor of 4;\nof fewer than 4, 25% below the best;"
         " of latency: 1.5 times its class's median, of fewer than 4 twice the best.\n"
         "Calibration: error is what a time between the sizes is promised to keep to, from leaving"
         " out each size in turn.\n";
}

std::string inference_key() {
  return "\nTTFT: time to the first tokens of all samples of a batch; TPOT: time per output token, "
         "in"
         " the middle of the output;\ntokens/s: of decode, over all replicas; frontier: nothing of"
         " this run is as quick per token and yields more per rank.\n";
}

std::string key() {
  std::string text =
      "\nStep time: median of untraced steps, each as long as its slowest rank, and 95% interval.\n"
      "Efficiency: throughput per rank relative to the baseline.\n"
      "Where a step went: shares of a traced step, mean over ranks, each moment counted once:\n";
  for (const Category& category : categories()) {
    text += fmt::format("  {} {:<9} {}\n", category.glyph, category.name, category.meaning);
  }
  text += "    hidden    communication behind computation and copies (part of these)\n";
  text += "    tracing   how much longer a step is when it is traced\n";
  text +=
      "Lost time: what a cause adds to the step beyond the baseline's share of it; untraced: what"
      " traced steps\n"
      "differ by. GEMMs: slower per FLOP without communication, by shapes, clocks or memory; GEMM"
      " overlap: with it.\n"
      "Efficiencies as the POP Centre of Excellence defines them; serialisation from a replay on a"
      " free network.\n";
  return text;
}

std::string joined_curve_text(const JoinedCurve& joined, const Report& report) {
  std::string text = heading(escape(joined.curve.title));
  for (const TitledTable& part : joined_tables(joined, report.runs)) text += titled(part) + "\n";
  if (const Points traced = traced_points(joined.curve); !traced.empty()) {
    text += fmt::format("  where a step went{}\n", of_launches(traced)) +
            breakdown_table(joined.curve) + "\n";
  }
  for (const TitledTable& part : cause_tables(joined.curve)) text += titled(part) + "\n";
  return text + lines(joined_remarks(joined, report.runs));
}

/// The headline and the tables.
std::string index_text(const Index& index, Numbered numbered) {
  std::string text = index_headline(index, numbered) + "\n";
  for (const IndexMachine& machine : index.machines) {
    for (const TitledTable& part : index_tables(index, machine, numbered)) {
      text += "\n" + titled(part);
    }
  }
  const Facts warnings = index_warnings(index);
  return warnings.empty() ? text : text + "\n" + lines(warnings);
}

std::string index_key_text() {
  std::string text = "\n";
  for (const std::string& sentence : index_key()) text += sentence + "\n";
  return text;
}

/// Of several launches: what each is, then the curves that they make together.
std::string joined_text(const Report& report) {
  std::string text = index_text(report.index, Numbered::as_launches);
  for (const std::string& warning : report.warnings) text += lines({{"WARNING", escape(warning)}});
  text += findings_text(findings_of(report));
  for (const JoinedCurve& joined : report.joined.curves) text += joined_curve_text(joined, report);
  if (report.joined.curves.empty()) text += "\nNo curve was measured.\n";
  for (const RunReport& run : report.runs) {
    text += fmt::format("\nlaunch {}: {}\n", &run - report.runs.data() + 1, headline(run)) +
            lines(header(run));
  }
  text +=
      "\nA launch's own curves, micro-benchmarks and calibration: isoscale report FILE, of one "
      "file.\n";
  for (const std::string& sentence : joined_key()) text += sentence + "\n";
  return text;
}

}  // namespace

std::string render_index_text(const IndexReport& report) {
  std::string text = index_text(report.index, Numbered::no);
  for (const std::string& warning : report.warnings) text += lines({{"WARNING", escape(warning)}});
  text += index_key_text();
  return report.why.empty() ? text : text + report.why + "\n";
}

std::string render_text(const Report& whole) {
  std::string text;
  if (whole.runs.size() > 1) {
    text = joined_text(whole) + index_key_text();
    return whole.joined.curves.empty() ? text : text + key();
  }
  bool explained = false, explained_bench = false;
  for (const RunReport& report : whole.runs) {
    text += headline(report) + "\n" + lines(header(report));
    for (const std::string& warning : whole.warnings) text += lines({{"WARNING", escape(warning)}});
    text += lines(index_warnings(whole.index));
    text += findings_text(findings_of(report));
    if (report.curves.empty() && report.benches.empty()) text += "\nNo point was measured.\n";
    for (const Curve& curve : report.curves) text += curve_text(curve) + devices_text(curve);
    for (const PointReport& point : report.benches) text += bench_text(point);
    text += serve_key(report);
    const std::vector<TitledTable> inference = inference_tables(report);
    if (!inference.empty()) {
      text += heading("inference") + tables_text(inference) + inference_key();
    }
    const std::vector<TitledTable> calibration = calibration_tables(report);
    if (!calibration.empty()) text += heading("calibration") + tables_text(calibration);
    explained = explained || !report.curves.empty();
    explained_bench = explained_bench || !report.benches.empty() || !calibration.empty();
  }
  if (explained) text += key();
  if (explained_bench) text += bench_key();
  return text;
}

}  // namespace isoscale::analysis
