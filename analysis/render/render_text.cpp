// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "analysis/advice/findings.hpp"
#include "analysis/render/bench_tables.hpp"
#include "analysis/render/catalog_tables.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/curve_tables.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/findings.hpp"
#include "analysis/render/inference.hpp"
#include "analysis/render/machine.hpp"
#include "analysis/render/remarks.hpp"
#include "analysis/render/summary.hpp"
#include "analysis/render/text.hpp"
#include "analysis/render/text_and_markdown.hpp"
#include "analysis/tracing_overhead.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t widest = 120;  ///< columns of a detailed report

std::string scaling_table(const Curve& curve) {
  std::vector<Column> columns{
      {"ranks"},        {"mesh", Align::left},      {"step time"},
      {"±95%"},         {throughput_unit(curve)},   {"speed-up"},
      {"FLOP/s/rank"},  {efficiency_column(curve)}, {efficiency_heading(), Align::left},
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

std::string tables_text(const std::vector<TitledTable>& tables) {
  std::string text;
  for (const TitledTable& part : tables) {
    if (&part != &tables.front()) text += "\n";
    text += part.title + "\n" + table(part.columns, part.rows);
  }
  return text;
}

/// Returns the tables and remarks on devices; "" where no device was sampled.
std::string devices_text(const Curve& curve) {
  const std::vector<TitledTable> tables = device_tables(curve);
  const Facts facts = device_remarks(curve);
  std::string text = tables_text(tables);
  if (!facts.empty()) text += (text.empty() ? "" : "\n") + lines(facts);
  return text;
}

/// Returns speed-up and efficiency with their intervals; "" where these add nothing to the other
/// tables.
std::string efficiency_table(const Curve& curve, const Sections& sections) {
  static constexpr std::array<Metric<PointReport>, 4> efficiency_metrics{{
      {"ranks", "ranks", Unit::count, "ranks of the point",
       [](const PointReport& at) -> Value {
         return statistics::Located{static_cast<double>(at.data->ranks)};
       }},
      {"speedup", "speed-up", Unit::factor, "throughput relative to the baseline's",
       [](const PointReport& at) { return number(speedup_of(at)); }},
      {"efficiency", "efficiency", Unit::share, "throughput per rank relative to the baseline's",
       [](const PointReport& at) { return number(efficiency_of(at)); }},
      {"serial_fraction", "Karp-Flatt serial fraction", Unit::share,
       "serial share that explains the speed-up",
       [](const PointReport& at) { return number(at.causes.serial_fraction); }},
  }};
  const bool has_intervals = std::ranges::any_of(curve.points, [](const PointReport& at) {
    const std::optional<statistics::Located> speedup = speedup_of(at);
    return speedup && speedup->lower;
  });
  if (!curve.baseline || (!has_intervals && sections.are_all())) return "";
  const DocumentTable table =
      table_of(std::span<const Metric<PointReport>>{efficiency_metrics}, std::span{curve.points});
  return "  speed-up and efficiency with 95% intervals\n" + to_text({table}, widest);
}

std::string remarks_text(const Facts& facts, const Sections& sections) {
  Facts wanted;
  for (const auto& fact : facts) {
    if (sections.has(section_of_remark(fact.first))) wanted.push_back(fact);
  }
  return lines(wanted);
}

/// The parts of a curve, separated by empty lines.
class Parts {
 public:
  void add(const std::string& part) {
    if (!part.empty()) text_ += (text_.empty() ? "" : "\n") + part;
  }
  /// Returns the parts below a heading; "" without parts.
  [[nodiscard]] std::string under(const std::string& title) const {
    return text_.empty() ? "" : heading(title) + text_;
  }

 private:
  std::string text_;
};

std::string curve_text(const Curve& curve, const Sections& sections) {
  Parts parts;
  if (const Facts why = all_skipped(curve); !why.empty()) {
    if (sections.has(Section::curves)) parts.add(lines(why));
    return parts.under(escape(curve.title));
  }
  if (sections.has(Section::curves)) parts.add(scaling_table(curve));
  if (sections.has(Section::efficiency)) parts.add(efficiency_table(curve, sections));
  if (sections.has(Section::breakdown) && !traced_points(curve).empty()) {
    parts.add(breakdown_table(curve));
  }
  for (const TitledTable& part : cause_tables(curve, sections)) parts.add(titled(part));
  parts.add(remarks_text(remarks(curve), sections));
  if (sections.has(Section::devices)) parts.add(devices_text(curve));
  return parts.under(escape(curve.title));
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

std::string joined_curve_text(const JoinedCurve& joined, const Report& report,
                              const Sections& sections) {
  Parts parts;
  const bool with_curves = sections.has(Section::curves);
  if (with_curves) {
    for (const TitledTable& part : joined_tables(joined, report.runs)) parts.add(titled(part));
  }
  if (joined.curve.points.empty()) {
    parts.add(remarks_text(joined_remarks(joined, report.runs), sections));
    return parts.under(escape(joined.curve.title));
  }
  if (sections.has(Section::efficiency)) parts.add(efficiency_table(joined.curve, sections));
  if (const Points traced = traced_points(joined.curve);
      sections.has(Section::breakdown) && !traced.empty()) {
    parts.add(fmt::format("  where a step went{}\n", of_launches(traced)) +
              breakdown_table(joined.curve));
  }
  for (const TitledTable& part : cause_tables(joined.curve, sections)) parts.add(titled(part));
  parts.add(remarks_text(joined_remarks(joined, report.runs), sections));
  return parts.under(escape(joined.curve.title));
}

/// Returns the headline and the tables.
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

std::string warnings_text(const Report& report) {
  Facts facts;
  for (const std::string& warning : report.warnings) facts.emplace_back("WARNING", escape(warning));
  return lines(facts);
}

std::string all_findings_text(const auto& report) {
  const std::vector<Finding> findings = findings_of(report);
  return findings_text(findings, findings.size(), left_out_of(report));
}

/// Describes each of several launches, then the curves joined over them.
std::string joined_text(const Report& report, const Sections& sections) {
  std::string text = index_text(report.index, Numbered::as_launches);
  if (sections.has(Section::warnings)) text += warnings_text(report);
  if (sections.has(Section::findings)) text += all_findings_text(report);
  for (const JoinedCurve& joined : report.joined.curves) {
    text += joined_curve_text(joined, report, sections);
  }
  if (report.joined.curves.empty()) text += "\nNo curve was measured.\n";
  for (const RunReport& run : report.runs) {
    text += fmt::format("\nlaunch {}: {}\n", &run - report.runs.data() + 1, headline(run)) +
            lines(header(run, sections));
  }
  text +=
      "\nA launch's own curves, micro-benchmarks and calibration: isoscale report FILE --detail, "
      "of "
      "one file.\n";
  if (!sections.has(Section::legend)) return text;
  for (const std::string& sentence : joined_key()) text += sentence + "\n";
  text += index_key_text();
  if (!report.joined.curves.empty()) text += key();
  return text + to_text(summary_legend(report.runs.front()), widest);
}

std::string run_text(const RunReport& run, const Report& whole, const Sections& sections) {
  std::string text = headline(run) + "\n" + lines(header(run, sections));
  if (sections.has(Section::warnings)) {
    text += warnings_text(whole) + lines(index_warnings(whole.index));
  }
  if (sections.has(Section::findings)) text += all_findings_text(run);
  if (run.curves.empty() && run.benches.empty()) text += "\nNo point was measured.\n";
  for (const Curve& curve : run.curves) text += curve_text(curve, sections);
  if (sections.has(Section::rows)) {
    for (const PointReport& point : run.benches) text += bench_text(point);
    if (const auto tables = inference_tables(run); !tables.empty()) {
      text += heading("inference") + tables_text(tables);
    }
  }
  if (sections.has(Section::calibration)) {
    if (const auto tables = calibration_tables(run); !tables.empty()) {
      text += heading("calibration") + tables_text(tables);
    }
  }
  return text;
}

std::string legend_text(const RunReport& run) {
  std::string text = run.curves.empty() ? "" : key();
  text += serve_key(run);
  if (!inference_tables(run).empty()) text += inference_key();
  if (!run.benches.empty() || !calibration_tables(run).empty()) text += bench_key();
  return text;
}

}  // namespace

std::string render_index_text(const IndexReport& report) {
  std::string text = index_text(report.index, Numbered::no);
  for (const std::string& warning : report.warnings) text += lines({{"WARNING", escape(warning)}});
  text += index_key_text();
  return report.why.empty() ? text : text + report.why + "\n";
}

std::string render_sections(const Report& report, const Sections& sections) {
  if (report.runs.size() > 1) return joined_text(report, sections);
  std::string text;
  for (const RunReport& run : report.runs) {
    text += run_text(run, report, sections);
    if (sections.has(Section::legend)) {
      text += legend_text(run) + to_text(summary_legend(run), widest);
    }
  }
  return text;
}

std::string render_text(const Report& report) { return render_sections(report, {}); }

std::string render_summary(const Report& report, std::size_t columns) {
  return to_text(summary(report), columns);
}

}  // namespace isoscale::analysis
