// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/merge/join.hpp"
#include "analysis/report.hpp"
#include "analysis/unit.hpp"

/// Findings open a report: short ranked sentences, each with its evidence and what to do next.
namespace isoscale::analysis::advice {

/// One number or text that supports a finding. Texts may come from run files and are not escaped.
struct Evidence {
  std::string what{};  ///< "exposed communication"
  Unit unit = Unit::share;
  double value = 0;    ///< in SI units; unused with Unit::text
  std::string text{};  ///< the words, with Unit::text
  int ranks = 0;       ///< rank count of the point; 0 = of the whole run

  bool operator==(const Evidence&) const = default;
};
/// Returns the value for people, "22.0%", "1.50 MiB"; not escaped.
[[nodiscard]] std::string value_text(const Evidence& evidence);
/// Returns "exposed communication 22.0%"; not escaped.
[[nodiscard]] std::string to_text(const Evidence& evidence);

/// The subject of a finding.
enum class Concern : std::uint8_t {
  hardware,     ///< a fault to repair: something is slower than its peers
  program,      ///< a cost of the program, the mesh or the placement
  measurement,  ///< how far the times can be trusted
};
/// Returns the name in the JSON report: "hardware", "program", "measurement".
[[nodiscard]] std::string_view name(Concern concern);

/// One problem that one rule found, on one curve or in a whole run. Texts may hold texts of run
/// files: not escaped.
struct Finding {
  std::string_view rule{};  ///< the rule's name: "communication-ratio"
  Concern concern = Concern::program;
  /// The estimated share of the step that the problem costs, 0 to 1; absent where it is not known.
  /// It serves only for ranking: the shares of several findings may cover the same time.
  std::optional<double> severity{};
  /// A share that ranks a finding without severity among others without severity; absent if there
  /// is no such number.
  std::optional<double> size{};
  std::string curve{};       ///< title of the curve; "" = of the whole run
  std::vector<int> ranks{};  ///< rank counts of the points, ascending; empty = of the whole run
  std::string sentence{};    ///< about the most severe of the points; 120 columns or so
  std::vector<Evidence> evidence{};  ///< of the most severe point first
  std::string next_step{};           ///< an option, a command, a place to look
  std::string_view source{};         ///< where the rule and its threshold come from
};

/// Points of a curve that were measured but not judged by the rules.
struct NotJudged {
  std::string curve{};       ///< title of the curve; may hold texts of run files: not escaped
  std::vector<int> ranks{};  ///< rank counts of the points, ascending
  /// The labels that are the reason: "oversubscribed". With "injected", rules about faults still
  /// judge.
  std::string why{};
};

/// Returns what the rules find in one run: on each point of its curves and in the run as a whole.
/// One finding holds all points of a curve on which a rule finds the same. The most severe come
/// first. Those of unknown severity come last: hardware faults, then the others, each by size, then
/// in the order of the rules.
[[nodiscard]] std::vector<Finding> findings_of(const RunReport& run);

/// Returns what the rules find on the joined curves and in each launch as a whole; for a single
/// launch, what they find in it.
[[nodiscard]] std::vector<Finding> findings_of(const merge::Report& report);

/// Returns the points that no rule judged, or only the rules about faults did.
[[nodiscard]] std::vector<NotJudged> left_out_of(const RunReport& run);
[[nodiscard]] std::vector<NotJudged> left_out_of(const merge::Report& report);

}  // namespace isoscale::analysis::advice
