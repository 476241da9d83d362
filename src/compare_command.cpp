// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "commands_and_output.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/comparison.hpp"
#include "analysis/experiment_and_machine_identity.hpp"
#include "analysis/page/page.hpp"
#include "analysis/report.hpp"
#include "base/warn.hpp"
#include "results/reader/reader.hpp"

namespace isoscale {
namespace {

/// Reads the run files of each side. If a side has several copies of one run, one is kept.
std::vector<analysis::RunFiles> read_sides(const settings::CompareCommand& command) {
  std::vector<analysis::RunFiles> sides;
  for (const auto& files : command.sides) {
    analysis::RunFiles read;
    for (const auto& file : files) {
      read.runs.push_back(results::read_run(file));
      read.files.push_back(file.string());
    }
    sides.push_back(analysis::without_copies(std::move(read)));
  }
  return sides;
}

std::string render(const analysis::compare::Comparison& comparison, settings::Format format) {
  using enum settings::Format;
  if (format == json) return analysis::compare::render_json(comparison);
  if (format == csv) return analysis::compare::render_csv(comparison);
  if (format == junit) return analysis::compare::render_junit(comparison);
  if (format == markdown) return analysis::compare::render_markdown(comparison);
  return analysis::compare::render_text(comparison);
}

/// Returns the error message for a refused comparison, with a line for each different setting.
std::string refusal(const analysis::compare::Comparison& comparison) {
  std::string text = "the sides measured different things, so they are not compared:";
  for (const std::string& line : analysis::compare::unlike_lines(comparison)) text += "\n  " + line;
  return text + "\nmeasure the same on all sides, or compare them anyway, marked, with --anyway";
}

}  // namespace

base::ExitCode execute(const settings::CompareCommand& command) {
  if (!command.html.empty()) analysis::page::require_page();
  // 1. Read the files and analyse each launch.
  const std::vector<analysis::RunFiles> files = read_sides(command);
  const analysis::ReportOptions of_launch{.rates_of_wrong = command.anyway};
  std::vector<std::vector<analysis::RunReport>> reports;
  for (const analysis::RunFiles& side : files) {
    auto& of_side = reports.emplace_back();
    for (std::size_t i = 0; i < side.runs.size(); ++i) {
      of_side.push_back(analysis::make_report(side.runs[i], side.files[i], of_launch));
    }
  }
  // 2. Compare.
  const std::vector<std::span<const analysis::RunReport>> sides{reports.begin(), reports.end()};
  settings::CompareCommand named = command;
  if (named.names.empty()) named.names = analysis::compare::default_names(sides);
  analysis::compare::Comparison comparison = analysis::compare::compare(sides, named);
  for (std::size_t s = 0; s < files.size(); ++s) {
    for (const std::string& warning : files[s].warnings) {
      comparison.warnings.push_back(fmt::format("side {}: {}", comparison.sides[s].name, warning));
    }
  }
  for (const std::string& warning : comparison.warnings) base::warn("isoscale: " + warning);
  // 3. Print the result. A refused comparison is printed in all formats but text, and is then
  // reported as an error in every format.
  analysis::page::write_page(comparison, command.html, command.if_exists);
  const bool is_text = command.format == settings::Format::text;
  if (!comparison.refused || !is_text) print(render(comparison, command.format));
  if (comparison.refused) throw base::UsageError(refusal(comparison));
  if (!comparison.gate) return base::ExitCode::done;
  return comparison.gate->fails() ? base::ExitCode::regression : base::ExitCode::done;
}

}  // namespace isoscale
