// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/merge/join_launches.hpp"
#include "analysis/report.hpp"
#include "analysis/value_units.hpp"

/// Defines the findings that open a report: ranked sentences, each with evidence and a next step.
namespace isoscale::analysis::advice {

/// One number or text that supports a finding. Texts may come from run files, so they must be
/// escaped before they are printed.
struct Evidence {
  std::string what{};  ///< name, such as "exposed communication"
  Unit unit = Unit::share;
  double value = 0;    ///< in SI units; unused with Unit::text
  std::string text{};  ///< the value, if the unit is Unit::text
  int ranks = 0;       ///< rank count of the point; 0 = the evidence is about the whole run

  bool operator==(const Evidence&) const = default;
};
/// Returns the value with its unit, such as "22.0%" or "1.50 MiB"; the text is not escaped.
[[nodiscard]] std::string value_text(const Evidence& evidence);
/// Returns name and value as one text: "exposed communication 22.0%", or "cause: some text" if the
/// value is a text. The result is not escaped.
[[nodiscard]] std::string to_text(const Evidence& evidence);

/// The subject of a finding.
enum class Concern : std::uint8_t {
  hardware,     ///< a fault to repair: something is slower than its peers
  program,      ///< a cost of the program, the mesh or the placement
  measurement,  ///< the reliability of the measured times
};
/// Returns the name in the JSON report: "hardware", "program", "measurement".
[[nodiscard]] std::string_view name(Concern concern);

/// One problem that one rule found, on one curve or in a whole run. Escape its texts before
/// printing: they may come from run files.
struct Finding {
  std::string_view rule{};  ///< the rule's name: "communication-ratio"
  Concern concern = Concern::program;
  /// The estimated share of the step time that the problem costs, 0 to 1; absent if unknown.
  /// Several findings may count the same time, so their severities must not be added up.
  std::optional<double> severity{};
  /// A number that ranks this finding among those of unknown severity; absent if there is none.
  std::optional<double> size{};
  std::string curve{};       ///< title of the curve; "" = the finding is about the whole run
  std::vector<int> ranks{};  ///< rank counts of the points, ascending; empty = the whole run
  std::string sentence{};    ///< describes the most severe point, in about 120 columns
  std::vector<Evidence> evidence{};  ///< evidence of the most severe point comes first
  std::string next_step{};           ///< advice: an option, a command or a place to look
  std::string_view source{};         ///< where the rule and its threshold come from

  /// Adds a number, or a text, to the evidence.
  void add(std::string what, double value, Unit unit = Unit::share);
  void add(std::string what, std::string text);
};

/// Points of a curve that were measured, but that some or all rules do not judge.
struct NotJudged {
  std::string curve{};       ///< title of the curve, not escaped; may hold texts of run files
  std::vector<int> ranks{};  ///< rank counts of the points, ascending
  /// The reason: labels such as "oversubscribed", or "spans contradict" if too much time of the
  /// traced steps is unexplained. Points with the label "injected" are still judged by the rules
  /// that should detect injected faults (Scope::faults in rules.hpp).
  std::string why{};
};

/// Returns the findings of all rules about the points of a run's curves and about the run as a
/// whole. If a rule finds a problem on several points of a curve, one finding covers them all.
/// Findings are ordered by falling severity. Those of unknown severity follow: first hardware
/// faults, then the others, both ordered by falling Finding::size, then as in rules().
[[nodiscard]] std::vector<Finding> findings_of(const RunReport& run);

/// Returns the findings about the curves that are joined from several launches, and about each
/// launch as a whole. For a single launch it returns the findings about that run.
[[nodiscard]] std::vector<Finding> findings_of(const merge::Report& report);

/// Returns the measured points that no rule judges, and those with injected faults, which only the
/// rules with Scope::faults (rules.hpp) judge.
[[nodiscard]] std::vector<NotJudged> left_out_of(const RunReport& run);
[[nodiscard]] std::vector<NotJudged> left_out_of(const merge::Report& report);

}  // namespace isoscale::analysis::advice
