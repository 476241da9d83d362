// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/findings/findings_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "analysis/render/cells.hpp"
#include "analysis/render/text_escape.hpp"
#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

constexpr std::size_t text_columns = 118, indent = 9;

std::string share_text(const std::optional<double>& severity) {
  constexpr double visible = 0.01;
  if (!severity) return std::string{undefined};
  return *severity < visible ? "<1%" : "~" + units::format_percent(*severity, 0);
}

/// Those of the gravest point: they stand first.
std::string evidence_text(const Finding& finding) {
  std::vector<std::string> parts;
  for (const Evidence& at : finding.evidence) {
    if (at.ranks == finding.evidence.front().ranks) parts.push_back(escape(to_text(at)));
  }
  const std::string numbers = fmt::format("{}", fmt::join(parts, "; "));
  if (finding.curve.empty()) return numbers;
  return escape(finding.curve) + (numbers.empty() ? "" : ": " + numbers);
}

/// `text` in lines of at most text_columns, each after the indent; words that are longer stand
/// alone.
std::string wrapped(const std::string& text) {
  std::string lines, line;
  const auto flush = [&] {
    if (!line.empty()) lines += std::string(indent, ' ') + line + "\n";
    line.clear();
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    const bool full =
        indent + display_width(line) + 1 + display_width(word) > text_columns && !line.empty();
    if (full) flush();
    line += (line.empty() ? "" : " ") + word;
  }
  flush();
  return lines;
}

/// Indices of those to show, ascending: of each rule about hardware the gravest is never hidden.
std::vector<std::size_t> shown(std::span<const Finding> findings) {
  std::vector<std::size_t> indices(findings.size());
  std::iota(indices.begin(), indices.end(), 0);
  std::set<std::string_view> seen;
  std::ranges::stable_partition(indices, [&](std::size_t i) {
    return findings[i].concern == Concern::hardware && seen.insert(findings[i].rule).second;
  });
  indices.resize(std::min(indices.size(), most_findings));
  std::ranges::sort(indices);
  return indices;
}

}  // namespace

std::vector<FindingCells> finding_cells(std::span<const Finding> findings) {
  std::vector<FindingCells> cells;
  for (const std::size_t i : shown(findings)) {
    const Finding& at = findings[i];
    cells.push_back({.share = share_text(at.severity),
                     .sentence = escape(at.sentence),
                     .evidence = evidence_text(at),
                     .next_step = escape(at.next_step),
                     .rule = std::string{at.rule},
                     .source = std::string{at.source}});
  }
  return cells;
}

std::string findings_footer(std::size_t count) {
  const std::string more = count > most_findings
                               ? fmt::format("and {} more: --format json; ", count - most_findings)
                               : std::string{};
  return more + "rules and sources: docs/findings.md";
}

std::string findings_text(std::span<const Finding> findings) {
  if (findings.empty()) return "";
  std::string text = fmt::format("\n{}\n", findings_heading);
  for (const FindingCells& at : finding_cells(findings)) {
    // The share stands in the indent of the first line.
    std::string first = wrapped(at.sentence);
    const std::size_t blanks = indent - 2 - std::min(indent - 2, display_width(at.share));
    first.replace(0, indent, std::string(blanks, ' ') + at.share + "  ");
    text += first + wrapped(at.evidence) + wrapped("next: " + at.next_step);
  }
  return text + wrapped(findings_footer(findings.size()));
}

}  // namespace isoscale::analysis
