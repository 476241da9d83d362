// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/report_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "analysis/render/cells.hpp"
#include "analysis/render/text.hpp"
#include "base/text.hpp"
#include "units/text.hpp"

namespace isoscale::analysis::render {
namespace {

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

Json evidence_json(const advice::Evidence& at) {
  return {{"ranks", at.ranks > 0 ? Json(at.ranks) : Json{}},
          {"what", at.what},
          {"value", at.unit == Unit::text ? Json(at.text) : Json(at.value)},
          {"unit", name(at.unit)},
          {"text", value_text(at)}};
}

}  // namespace

std::string share_text(const advice::Finding& finding) {
  constexpr double visible = 0.01;
  if (!finding.severity) return std::string{undefined};
  return *finding.severity < visible ? "<1%" : "~" + units::format_percent(*finding.severity, 0);
}

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
    parts.push_back(fmt::format("{} of {} ({})", base::counted(ranks, "rank"),
                                base::listed(names, most_curves), why));
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

Json left_out_json(std::span<const advice::NotJudged> left_out) {
  return list_json(left_out, [](const advice::NotJudged& at) {
    return Json{{"curve", at.curve}, {"ranks", at.ranks}, {"why", at.why}};
  });
}

Json findings_json(std::span<const advice::Finding> findings) {
  return list_json(findings, [](const advice::Finding& at) {
    return Json{{"rule", at.rule},
                {"concern", name(at.concern)},
                {"severity", value_json(at.severity)},
                {"size", value_json(at.size)},
                {"curve", value_json(at.curve)},
                {"ranks", at.ranks},
                {"sentence", at.sentence},
                {"evidence", list_json(at.evidence, evidence_json)},
                {"next_step", at.next_step},
                {"source", at.source}};
  });
}

}  // namespace isoscale::analysis::render
