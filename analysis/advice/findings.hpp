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

/// Findings are what a report says first: short ranked sentences, each with its evidence and what
/// to do next.
namespace isoscale::analysis {

/// One number, or words, that a finding rests on. Texts may come from run files: not escaped.
struct Evidence {
  std::string what{};  ///< "exposed communication"
  Unit unit = Unit::share;
  double value = 0;    ///< SI; of no meaning with Unit::text
  std::string text{};  ///< with Unit::text
  int ranks = 0;       ///< of the point that it is of; 0 = of the run

  bool operator==(const Evidence&) const = default;
};
/// "22.0%", "1.50 MiB": the value for people; not escaped.
[[nodiscard]] std::string value_text(const Evidence& evidence);
/// "exposed communication 22.0%"; not escaped.
[[nodiscard]] std::string to_text(const Evidence& evidence);

/// The subject of a finding.
enum class Concern : std::uint8_t {
  hardware,     ///< a fault to mend: something is slower than its like
  program,      ///< what the program, the mesh or the placement costs
  measurement,  ///< how far times are to be believed
};
/// As the JSON report names it: "hardware", "program", "measurement".
[[nodiscard]] std::string_view name(Concern concern);

/// A thing that one rule found, on one curve or of a whole run. Texts may hold texts of run files:
/// not escaped.
struct Finding {
  std::string_view rule{};  ///< the rule's name: "communication-ratio"
  Concern concern = Concern::program;
  /// Estimated share of the step that is lost by it, 0 to 1: for ranking, and no more than an
  /// estimate; shares of several findings may be of the same time. Absent where it is not known.
  std::optional<double> severity{};
  /// Where severity is absent, how large what was found is, as a share: for ranking, and only
  /// beside others without severity. Absent where there is no such number.
  std::optional<double> size{};
  std::string curve{};       ///< title of the curve; "" = of the whole run
  std::vector<int> ranks{};  ///< rank counts of the points, ascending; empty = of the whole run
  std::string sentence{};  ///< of the most severe point where there are several; 120 columns or so
  std::vector<Evidence> evidence{};  ///< of the most severe point first
  std::string next_step{};           ///< an option, a command, a place to look
  std::string_view source{};         ///< where the rule and its threshold come from
};

/// Points of a curve that rules did not judge, though they were measured.
struct NotJudged {
  std::string curve{};       ///< title of the curve; may hold texts of run files: not escaped
  std::vector<int> ranks{};  ///< rank counts of the points, ascending
  std::string why{};         ///< their labels: "oversubscribed"; of "injected" faults are judged
};

/// Gives what the rules find in one run: on each point of its curves and in the run as a whole.
/// Points of a curve that a rule finds the same of are one finding. Gravest first; those of unknown
/// severity last: faults of hardware, then the others, each by size, then in the order of the
/// rules.
[[nodiscard]] std::vector<Finding> findings_of(const RunReport& run);

/// Gives of several launches what is found on the joined curves, and in each launch as a whole; of
/// one what is found in it.
[[nodiscard]] std::vector<Finding> findings_of(const Report& report);

/// The points that the rules, or all but those about faults, did not judge.
[[nodiscard]] std::vector<NotJudged> left_out_of(const RunReport& run);
[[nodiscard]] std::vector<NotJudged> left_out_of(const Report& report);

}  // namespace isoscale::analysis
