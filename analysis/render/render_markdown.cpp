// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "analysis/advice/findings.hpp"
#include "analysis/render/bench_tables.hpp"
#include "analysis/render/catalog_tables.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/curve_tables.hpp"
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

std::string scaling_markdown(const Curve& curve) {
  const bool with_nodes = spans_nodes(curve);
  MarkdownCells names{"ranks",
                      "mesh",
                      "step time",
                      "±95%",
                      throughput_unit(curve),
                      "speed-up",
                      efficiency_column(curve),
                      "FLOP/s/rank",
                      "notes"};
  if (with_nodes) names.insert(names.begin() + 1, "nodes");
  const std::size_t notes_at = names.size() - 1;
  std::string text = markdown_heading(names, {with_nodes ? 2U : 1U, notes_at});
  for (const PointReport& point : curve.points) {
    MarkdownCells cells{std::to_string(point.data->ranks), mesh::to_string(point.data->mesh)};
    if (with_nodes) cells.insert(cells.begin() + 1, nodes_cell(point));
    if (const std::string why = excuse(point); !why.empty()) {
      cells.resize(notes_at, std::string{undefined});
      cells.push_back(why);
    } else {
      cells.insert(cells.end(),
                   {step_time(point), interval(point), throughput(point), fixed(point.speedup),
                    percent(point.efficiency), flops_per_rank(point), notes(point)});
    }
    text += markdown_row(cells);
  }
  return text;
}

std::string breakdown_markdown(const Curve& curve) {
  MarkdownCells names{"ranks"};
  for (const Category& category : categories()) names.emplace_back(category.name);
  names.insert(names.end(), {"hidden", "tracing"});
  std::string text = markdown_heading(names, {});
  for (const PointReport& point : curve.points) {
    if (!point.breakdown.mean) continue;
    MarkdownCells cells{std::to_string(point.data->ranks)};
    for (const Category& category : categories()) cells.push_back(share(point, category.seconds));
    cells.push_back(share(point, &Breakdown::hidden_communication));
    cells.push_back(overhead_text(point.instrumentation_overhead));
    text += markdown_row(cells);
  }
  return text;
}

/// Returns the shares of a traced step; "" where nothing was traced.
std::string shares_markdown(const Curve& curve) {
  const Points traced = traced_points(curve);
  if (traced.empty()) return "";
  return fmt::format("\nShares of a traced step, mean over ranks{}:\n\n", of_launches(traced)) +
         breakdown_markdown(curve);
}

std::string curve_markdown(const Curve& curve) {
  std::string text = fmt::format("\n### {}\n\n", literal(escape(curve.title)));
  if (const Facts why = all_skipped(curve); !why.empty()) return text + markdown_list(why);
  text += scaling_markdown(curve);
  text += shares_markdown(curve) + markdown_tables(cause_tables(curve));
  const Facts facts = remarks(curve);
  if (!facts.empty()) text += "\n" + markdown_list(facts);
  return text;
}

/// Returns the tables and remarks on devices; "" where no device was sampled.
std::string devices_markdown(const Curve& curve) {
  const Facts facts = device_remarks(curve);
  return markdown_tables(device_tables(curve)) + (facts.empty() ? "" : "\n" + markdown_list(facts));
}

std::string bench_markdown(const PointReport& point) {
  std::string text = fmt::format("\n### {}\n", literal(bench_title(point)));
  if (const std::string why = excuse(point); !why.empty()) text += "\n" + literal(why) + "\n";
  text += markdown_tables(bench_tables(point));
  const Facts facts = bench_remarks(point);
  if (!facts.empty()) text += "\n" + markdown_list(facts);
  return text;
}

std::string warnings_markdown(const Report& report) {
  Facts facts;
  for (const std::string& warning : report.warnings) {
    facts.emplace_back("WARNING", escape(warning));
  }
  return markdown_list(facts);
}

/// Returns the list of findings; "" if there are none.
std::string findings_list(const std::vector<Finding>& findings) {
  if (findings.empty()) return "";
  std::string text = fmt::format("\n### {}\n\n", literal(findings_heading));
  for (const FindingCells& at : finding_cells(findings)) {
    text += fmt::format("- {}: **{}**\n  {}\n  Next: {}\n  ({}: {})\n", literal(at.share),
                        literal(at.sentence), literal(at.evidence), literal(at.next_step),
                        literal(at.rule), literal(at.source));
  }
  return text + "\n" + literal(findings_footer(findings.size())) + "\n";
}

std::string index_markdown(const Index& index, Numbered numbered) {
  std::string text = fmt::format("## {}\n", literal(index_headline(index, numbered)));
  for (const IndexMachine& machine : index.machines) {
    text += markdown_tables(index_tables(index, machine, numbered));
  }
  const Facts warnings = index_warnings(index);
  if (!warnings.empty()) text += "\n" + markdown_list(warnings);
  return text;
}

std::string joined_markdown(const Report& report) {
  std::string text = index_markdown(report.index, Numbered::as_launches);
  if (!report.warnings.empty()) text += "\n" + warnings_markdown(report);
  text += findings_list(findings_of(report));
  text += "\n## One curve over all launches\n";
  for (const JoinedCurve& joined : report.joined.curves) {
    text += fmt::format("\n### {}\n", literal(escape(joined.curve.title)));
    text += markdown_tables(joined_tables(joined, report.runs)) + shares_markdown(joined.curve) +
            markdown_tables(cause_tables(joined.curve)) + "\n" +
            markdown_list(joined_remarks(joined, report.runs));
  }
  text += "\n";
  for (const std::string& sentence : joined_key()) text += literal(sentence) + "\n";
  for (const std::string& sentence : index_key()) text += literal(sentence) + "\n";
  return text;
}

/// Returns the summary with its first heading moved before the line about the machine.
std::string answer_markdown(const Report& report) {
  Document document = answer(report);
  const auto title = std::ranges::find_if(
      document, [](const Block& at) { return std::holds_alternative<Heading>(at); });
  if (title != document.end()) std::rotate(document.begin(), title, title + 1);
  return to_markdown(document);
}

}  // namespace

std::string render_index_markdown(const IndexReport& report) {
  std::string text = index_markdown(report.index, Numbered::no);
  Facts facts;
  for (const std::string& warning : report.warnings) facts.emplace_back("WARNING", escape(warning));
  if (!facts.empty()) text += "\n" + markdown_list(facts);
  text += "\n";
  for (const std::string& sentence : index_key()) text += literal(sentence) + "\n";
  return report.why.empty() ? text : text + literal(report.why) + "\n";
}

std::string render_markdown(const Report& whole) {
  std::string text = answer_markdown(whole);
  if (whole.runs.size() > 1) text += joined_markdown(whole);
  for (const RunReport& report : whole.runs) {
    if (&report != &whole.runs.front() || whole.runs.size() > 1) text += "\n";
    const bool several = whole.runs.size() > 1;
    text += several ? fmt::format("## Launch {}: ", &report - whole.runs.data() + 1) : "## ";
    text += literal(headline(report)) + "\n\n" + markdown_list(header(report));
    if (several) continue;
    text += warnings_markdown(whole) + markdown_list(index_warnings(whole.index));
    text += findings_list(findings_of(report));
    if (report.curves.empty() && report.benches.empty()) text += "\nNo point was measured.\n";
    for (const Curve& curve : report.curves)
      text += curve_markdown(curve) + devices_markdown(curve);
    for (const PointReport& point : report.benches) text += bench_markdown(point);
    const std::vector<TitledTable> inference = inference_tables(report);
    if (!inference.empty()) text += "\n### inference\n" + markdown_tables(inference);
    const std::vector<TitledTable> calibration = calibration_tables(report);
    if (!calibration.empty()) text += "\n### calibration\n" + markdown_tables(calibration);
  }
  return text;
}

}  // namespace isoscale::analysis
