// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/causes/cause_tables.hpp"
#include "analysis/devices/device_tables.hpp"
#include "analysis/findings/findings.hpp"
#include "analysis/findings/findings_text.hpp"
#include "analysis/launches/joined_tables.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/node_cells.hpp"
#include "analysis/render/text_escape.hpp"
#include "analysis/rows/bench_tables.hpp"

namespace isoscale::analysis {
namespace {

/// `text` such that markdown shows it as it is.
std::string literal(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      if (std::string_view{"\\`*_{}[]()#!|~>"}.find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return result;
}

using Cells = std::vector<std::string>;

std::string row(const Cells& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + literal(cell) + " |";
  return text + "\n";
}

/// Heading and rule of a table whose columns are numbers but for those named in `left`.
std::string heading(const Cells& names, const std::vector<std::size_t>& left) {
  std::string rule = "|";
  for (std::size_t i = 0; i < names.size(); ++i) {
    rule += std::ranges::find(left, i) == left.end() ? "---:|" : "---|";
  }
  return row(names) + rule + "\n";
}

std::string list(const Facts& facts) {
  std::string text;
  for (const auto& [key, value] : facts) text += fmt::format("- {}: {}\n", key, literal(value));
  return text;
}

std::string scaling_table(const Curve& curve) {
  const bool with_nodes = spans_nodes(curve);
  Cells names{"ranks",    "mesh",       "step time",   "±95%", throughput_unit(curve),
              "speed-up", "efficiency", "FLOP/s/rank", "notes"};
  if (with_nodes) names.insert(names.begin() + 1, "nodes");
  const std::size_t notes_at = names.size() - 1;
  std::string text = heading(names, {with_nodes ? 2U : 1U, notes_at});
  for (const PointReport& point : curve.points) {
    Cells cells{std::to_string(point.data->ranks), mesh::to_string(point.data->mesh)};
    if (with_nodes) cells.insert(cells.begin() + 1, nodes_cell(point));
    if (const std::string why = excuse(point); !why.empty()) {
      cells.resize(notes_at, std::string{undefined});
      cells.push_back(why);
    } else {
      cells.insert(cells.end(),
                   {step_time(point), interval(point), throughput(point), fixed(point.speedup),
                    percent(point.efficiency), flops_per_rank(point), notes(point)});
    }
    text += row(cells);
  }
  return text;
}

std::string breakdown_table(const Curve& curve) {
  Cells names{"ranks"};
  for (const Category& category : categories()) names.emplace_back(category.name);
  names.insert(names.end(), {"hidden", "tracing"});
  std::string text = heading(names, {});
  for (const PointReport& point : curve.points) {
    if (!point.breakdown.mean) continue;
    Cells cells{std::to_string(point.data->ranks)};
    for (const Category& category : categories()) cells.push_back(share(point, category.seconds));
    cells.push_back(share(point, &Breakdown::hidden_communication));
    cells.push_back(overhead_text(point.instrumentation_overhead));
    text += row(cells);
  }
  return text;
}

std::string tables_text(const std::vector<TitledTable>& tables) {
  std::string text;
  for (const TitledTable& part : tables) {
    Cells names;
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < part.columns.size(); ++i) {
      names.push_back(part.columns[i].heading);
      if (part.columns[i].align == Align::left) left.push_back(i);
    }
    const bool remarked =
        std::ranges::any_of(part.rows, [](const Row& at) { return !at.tail.empty(); });
    if (remarked) {
      left.push_back(names.size());
      names.emplace_back("notes");
    }
    text += fmt::format("\n{}:\n\n", literal(part.title)) + heading(names, left);
    for (const Row& at : part.rows) {
      Cells cells = at.cells;
      cells.resize(part.columns.size(), std::string{undefined});
      if (remarked) cells.push_back(at.tail);
      text += row(cells);
    }
  }
  return text;
}

/// Nothing, where nothing was traced.
std::string shares_text(const Curve& curve) {
  const Points traced = traced_points(curve);
  if (traced.empty()) return "";
  return fmt::format("\nShares of a traced step, mean over ranks{}:\n\n", of_launches(traced)) +
         breakdown_table(curve);
}

std::string curve_text(const Curve& curve) {
  std::string text = fmt::format("\n### {}\n\n", literal(escape(curve.title)));
  if (const Facts why = all_skipped(curve); !why.empty()) return text + list(why);
  text += scaling_table(curve);
  text += shares_text(curve) + tables_text(cause_tables(curve));
  const Facts facts = remarks(curve);
  if (!facts.empty()) text += "\n" + list(facts);
  return text;
}

/// Nothing, where no device was looked at.
std::string devices_text(const Curve& curve) {
  const Facts facts = device_remarks(curve);
  return tables_text(device_tables(curve)) + (facts.empty() ? "" : "\n" + list(facts));
}

std::string bench_text(const PointReport& point) {
  std::string text = fmt::format("\n### {}\n", literal(bench_title(point)));
  if (const std::string why = excuse(point); !why.empty()) text += "\n" + literal(why) + "\n";
  text += tables_text(bench_tables(point));
  const Facts facts = bench_remarks(point);
  if (!facts.empty()) text += "\n" + list(facts);
  return text;
}

std::string warnings_text(const Report& report) {
  Facts facts;
  for (const std::string& warning : report.warnings) {
    facts.emplace_back("WARNING", escape(warning));
  }
  return list(facts);
}

/// Nothing without findings.
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

std::string joined_text(const Report& report) {
  std::string text = "## One curve over all launches\n";
  text += tables_text({launch_table(report.runs)});
  if (!report.warnings.empty()) text += "\n" + warnings_text(report);
  text += findings_list(findings_of(report));
  for (const JoinedCurve& joined : report.joined.curves) {
    text += fmt::format("\n### {}\n", literal(escape(joined.curve.title)));
    text += tables_text(joined_tables(joined, report.runs)) + shares_text(joined.curve) +
            tables_text(cause_tables(joined.curve)) + "\n" +
            list(joined_remarks(joined, report.runs));
  }
  text += "\n";
  for (const std::string& sentence : joined_key()) text += literal(sentence) + "\n";
  return text;
}

}  // namespace

std::string render_markdown(const Report& whole) {
  std::string text = whole.runs.size() > 1 ? joined_text(whole) : "";
  for (const RunReport& report : whole.runs) {
    if (!text.empty()) text += "\n";
    const bool several = whole.runs.size() > 1;
    text += several ? fmt::format("## Launch {}: ", &report - whole.runs.data() + 1) : "## ";
    text += literal(headline(report)) + "\n\n" + list(header(report));
    if (several) continue;
    text += warnings_text(whole) + findings_list(findings_of(report));
    if (report.curves.empty() && report.benches.empty()) text += "\nNo point was measured.\n";
    for (const Curve& curve : report.curves) text += curve_text(curve) + devices_text(curve);
    for (const PointReport& point : report.benches) text += bench_text(point);
    const std::vector<TitledTable> calibration = calibration_tables(report);
    if (!calibration.empty()) text += "\n### calibration\n" + tables_text(calibration);
  }
  return text;
}

}  // namespace isoscale::analysis
