// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/summary_findings_and_index.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <string_view>
#include <utility>

#include "analysis/advice/findings.hpp"
#include "analysis/render/machine_and_preflight.hpp"
#include "analysis/render/table_cells.hpp"
#include "base/text.hpp"
#include "results/records/preflight_result.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::analysis::render {
namespace {

constexpr std::size_t most_shown_findings = 3;
constexpr std::size_t most_shown_warnings = 4;

/// Removes marks and words that say little, so that the end of the line is not cut: "Intel(R)
/// Xeon(R) Processor" becomes "Intel Xeon".
std::string without_marks(std::string text) {
  for (const std::string_view mark : {"(R)", "(TM)", "(tm)", " Processor", " CPU"}) {
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      text.erase(at, mark.size());
    }
  }
  return text;
}

/// Returns the first line of the summary: machine, device, day, version. In runs on GPUs the device
/// comes first.
std::string title_of(const RunReport& run) {
  const results::RunData& data = *run.data;
  const std::string machine = without_marks(machine_text(data));
  const std::string described =
      data.device == "host" ? machine + "; host"
                            : fmt::format("{}: {}; {}", data.device, data.device_detail, machine);
  const std::string day = data.created.substr(0, data.created.find('T'));
  return fmt::format("{}; {}, Isoscale {}", described, day, data.isoscale_version);
}

/// Returns a note on the points of a run for which `belongs` is true: their number, and the reason
/// of the first. The note has no text if there are no such points.
Note note_on(const RunReport& run, std::string key, Lines lines,
             bool (*belongs)(const results::PointData&)) {
  std::vector<const results::PointData*> points = pointers_to(run.data->points);
  std::erase_if(points, [&](const results::PointData* point) { return !belongs(*point); });
  if (points.empty()) return {};
  const results::PointData& first = *points.front();
  std::string reason = first.reason;
  if (reason.empty()) reason = first.verified == false ? first.verification : "no reason recorded";
  return {std::move(key),
          fmt::format("{} of {}{}: {} on {}: {}", points.size(),
                      base::counted(run.data->points.size(), "point"),
                      points.size() == 1 ? "" : ", the first", first.workload,
                      base::counted(first.ranks, "rank"), reason),
          lines};
}

bool is_failed(const results::PointData& point) {
  return point.verified == false || point.status == results::PointStatus::failed;
}

bool is_skipped(const results::PointData& point) {
  return !is_failed(point) && point.status == results::PointStatus::skipped;
}

/// Returns "launch 2: " for one of several runs; "" if the report has only one run.
std::string launch_text(const merge::Report& report, const RunReport& run) {
  return report.runs.size() == 1 ? "" : fmt::format("launch {}: ", &run - report.runs.data() + 1);
}

void add_more(std::vector<Note>& notes, std::size_t count, std::string_view section) {
  if (count > 0) notes.push_back({"", fmt::format("and {} more: --detail {}", count, section)});
}

/// Returns notes on the runs that did not finish, and on failed, wrong and skipped points.
std::vector<Note> opening(const merge::Report& report) {
  std::vector<Note> notes;
  for (const RunReport& run : report.runs) {
    const auto add = [&](Note note) {
      if (note.text.empty()) return;
      note.text = launch_text(report, run) + note.text;
      notes.push_back(std::move(note));
    };
    if (!run.data->complete) add({"PARTIAL", partial_text(*run.data)});
    add(note_on(run, "FAILED", Lines::as_needed, is_failed));
    add(note_on(run, "SKIPPED", Lines::one, is_skipped));
  }
  constexpr std::size_t most = 6;
  const std::size_t more = notes.size() > most ? notes.size() - most + 1 : 0;
  notes.resize(notes.size() - more);
  add_more(notes, more, "curves");
  return notes;
}

/// Adds a table and, if `left_out` is not 0, a note on how many of its rows were left out.
void add_table(DocumentTable table, std::size_t left_out, std::string_view section,
               Document& document) {
  document.emplace_back(std::move(table));
  std::vector<Note> more;
  add_more(more, left_out, section);
  if (!more.empty()) document.emplace_back(std::move(more));
}

void add_curves(const CurvesSummary& curves, Document& document) {
  if (curves.table.rows.empty()) return;
  document.push_back(Heading{curves.sentence});
  if (!curves.common.empty()) document.push_back(Paragraph{curves.common + ":"});
  add_table(curves.table, curves.left_out, "curves", document);
}

void add_benches(const merge::Report& report, Document& document) {
  BenchesSummary benches = summarise_benches(report);
  if (benches.table.rows.empty()) return;
  document.push_back(Heading{"Measured alone:"});
  add_table(std::move(benches.table), benches.left_out, "rows", document);
}

/// Returns the share of a step that a finding may cost: "~22%", "<1%", or "—" if it is not known.
std::string share_text(const advice::Finding& finding) {
  constexpr double visible = 0.01;
  if (!finding.severity) return std::string{undefined};
  return *finding.severity < visible ? "<1%" : "~" + units::format_percent(*finding.severity, 0);
}

/// Returns the name of the finding's curve, if it has one, and the evidence for the most severe
/// point, which comes first in the finding's list.
std::string evidence_text(const advice::Finding& finding) {
  std::vector<std::string> parts;
  for (const advice::Evidence& at : finding.evidence) {
    if (at.ranks == finding.evidence.front().ranks) parts.push_back(to_text(at));
  }
  const std::string numbers = fmt::format("{}", fmt::join(parts, "; "));
  if (finding.curve.empty()) return numbers;
  return finding.curve + (numbers.empty() ? "" : ": " + numbers);
}

/// The findings of one rule that have the same next step. The summary shows only the most severe of
/// them, which comes first.
using Alike = std::vector<const advice::Finding*>;

/// Returns the sentence of the most severe finding, after the name of its curve, and the names of
/// the other curves: "hybrid, 2 ranks: no overlap ... (also: dp; tp)".
std::string sentence_of(const Alike& alike, const CurvesSummary& curves) {
  const auto name_of = [&](const advice::Finding& at) {
    const auto name = curves.names.find(at.curve);
    return name == curves.names.end() ? std::string{} : name->second;
  };
  std::vector<std::string> others;
  for (const advice::Finding* const at : alike | std::views::drop(1)) {
    const std::string name = name_of(*at);
    if (!name.empty() && std::ranges::find(others, name) == others.end()) others.push_back(name);
  }
  const std::string name = name_of(*alike.front());
  std::string text = (name.empty() ? "" : name + ", ") + alike.front()->sentence;
  if (!others.empty()) text += fmt::format(" (also: {})", fmt::join(others, "; "));
  return text;
}

void add_findings(const merge::Report& report, const CurvesSummary& curves, Document& document) {
  const std::vector<advice::Finding> findings = advice::findings_of(report);
  const auto kind = [](const advice::Finding& at) { return std::pair{at.rule, at.next_step}; };
  const auto groups = grouped(pointers_to(findings), kind);
  const std::string left_out = left_out_text(advice::left_out_of(report));
  if (groups.empty() && left_out.empty()) return;
  std::vector<Note> notes;
  std::vector<advice::Finding> first;
  for (const auto& [unused, alike] : groups) first.push_back(*alike.front());
  std::size_t shown = 0;
  for (const std::size_t i : shown_findings(first, most_shown_findings)) {
    notes.push_back({share_text(first[i]), sentence_of(groups[i].second, curves)});
    if (!first[i].next_step.empty()) notes.push_back({"", "next: " + first[i].next_step});
    shown += groups[i].second.size();
  }
  add_more(notes, findings.size() - shown, "findings");
  if (!left_out.empty()) notes.push_back({"", "not judged: " + left_out});
  document.push_back(Heading{
      groups.empty() ? "Findings: none."
                     : "Findings, most severe first, with the share of a step each may cost:"});
  document.push_back(notes);
}

/// Returns all warnings: those of the report, of files, of runs and their preflight checks, and of
/// the devices at points of curves.
std::vector<std::string> warnings_of(const merge::Report& report) {
  std::vector<std::string> all = report.warnings;
  for (const auto& [key, text] : index_warnings(report.index)) all.push_back(text);
  for (const RunReport& run : report.runs) {
    const std::string launch = launch_text(report, run);
    for (const std::string& warning : run.data->warnings) all.push_back(launch + warning);
    if (run.data->preflight) {
      for (const results::CheckResult& result : run.data->preflight->results) {
        if (result.verdict >= results::Verdict::warning) {
          all.push_back(launch + results::to_sentence(result));
        }
      }
    }
    for (const Curve& curve : run.curves) {
      for (const PointReport& point : curve.points) {
        for (const std::string& warning : point.devices.warnings) {
          all.push_back(fmt::format("{}{} on {}: {}", launch, point.data->workload,
                                    base::counted(point.data->ranks, "rank"), warning));
        }
      }
    }
  }
  return all;
}

void add_warnings(const merge::Report& report, Document& document) {
  const std::vector<std::string> warnings = warnings_of(report);
  if (warnings.empty()) return;
  std::vector<Note> notes;
  for (std::size_t i = 0; i < std::min(warnings.size(), most_shown_warnings); ++i) {
    notes.push_back({"", warnings[i], Lines::one});
  }
  add_more(notes, warnings.size() - notes.size(), "warnings");
  document.push_back(Heading{"Warnings:"});
  document.push_back(notes);
}

/// Returns the name of the run file for a command that is shown to the user. It is a placeholder if
/// there are several files, if the name is long, or if a shell may not take it literally.
std::string argument_of(const merge::Report& report) {
  if (report.runs.size() != 1) return "FILE...";
  constexpr std::size_t longest = 60;
  const std::string& file = report.runs.front().file;
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/+-=:@,";
  const bool is_plain = file.find_first_not_of(plain) == std::string::npos;
  return is_plain && !file.empty() && file.size() <= longest ? file : "FILE";
}

}  // namespace

std::vector<std::size_t> shown_findings(std::span<const advice::Finding> findings,
                                        std::size_t most) {
  std::vector<std::size_t> indices(findings.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::set<std::string_view> seen;
  const auto others = std::ranges::stable_partition(indices, [&](std::size_t i) {
    return findings[i].concern == advice::Concern::hardware && seen.insert(findings[i].rule).second;
  });
  const std::size_t faults = indices.size() - others.size();
  indices.resize(std::min(indices.size(), std::max(most, faults)));
  std::ranges::sort(indices);
  return indices;
}

std::string left_out_text(std::span<const advice::NotJudged> left_out) {
  constexpr std::size_t most_curves = 4;
  // Curves with the same rank counts and reason share one entry, which names their workloads.
  std::map<std::pair<std::vector<int>, std::string>, std::vector<std::string>> alike;
  for (const advice::NotJudged& at : left_out) {
    std::vector<std::string>& names = alike[{at.ranks, at.why}];
    const std::string workload = at.curve.substr(0, at.curve.find(", "));
    if (std::ranges::find(names, workload) == names.end()) names.push_back(workload);
  }
  std::vector<std::string> parts;
  for (const auto& [points, names] : alike) {
    const auto& [ranks, why] = points;
    parts.push_back(fmt::format("{} on {} ({})", base::listed(names, most_curves),
                                base::counted(ranks, "rank"), why));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

Document findings_document(std::span<const advice::Finding> findings,
                           std::span<const advice::NotJudged> left_out) {
  if (findings.empty() && left_out.empty()) return {};
  std::vector<Note> notes;
  const auto add = [&notes](std::string key, std::string text) {
    if (!text.empty()) notes.push_back({std::move(key), std::move(text)});
  };
  for (const advice::Finding& at : findings) {
    add(share_text(at), at.sentence);
    add("", evidence_text(at));
    add("", at.next_step.empty() ? "" : "next: " + at.next_step);
    add("", at.source.empty() ? "" : fmt::format("{}: {}", at.rule, at.source));
  }
  if (!left_out.empty()) add("", "not judged: " + left_out_text(left_out));
  add("", "rules and sources: docs/findings.md");
  return {Heading{findings.empty() ? "findings: none"
                                   : "findings, most severe first, with the share of a step that "
                                     "each may cost"},
          std::move(notes)};
}

Document summary_legend(const RunReport& run) {
  Document document{Heading{"Columns of the summary:"}};
  if (!run.curves.empty()) document.push_back(curve_legend());
  if (!run.benches.empty()) document.push_back(bench_legend());
  return document.size() == 1 ? Document{} : document;
}

Document answer(const merge::Report& report) {
  Document document;
  if (report.runs.size() != 1) {
    document.push_back(Paragraph{index_headline(report.index, Numbered::as_launches), Lines::one});
  }
  if (!report.runs.empty()) {
    const RunReport& first = report.runs.front();
    document.push_back(Paragraph{launch_text(report, first) + title_of(first), Lines::one});
  }
  if (std::vector<Note> notes = opening(report); !notes.empty()) document.push_back(notes);
  const CurvesSummary curves = summarise_curves(report);
  const std::size_t before = document.size();
  add_curves(curves, document);
  add_benches(report, document);
  if (document.size() == before) document.push_back(Heading{"No point was measured."});
  add_findings(report, curves, document);
  add_warnings(report, document);
  return document;
}

Document summary(const merge::Report& report) {
  Document document = answer(report);
  const std::string file = argument_of(report);
  document.push_back(Heading{"Read on:"});
  document.push_back(
      std::vector<Note>{{"all numbers", fmt::format("isoscale report {} --detail", file)},
                        {"charts", fmt::format("isoscale report {} --html PAGE.html", file)},
                        {"columns", "docs/report.md, or --detail legend"}});
  return document;
}

}  // namespace isoscale::analysis::render
