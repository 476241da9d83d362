// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/findings/finding.hpp"
#include "analysis/report.hpp"

namespace isoscale::analysis {

/// A number that a rule compares with; docs/findings.md has it too.
struct Threshold {
  std::string_view what;
  double value = 0;
  Unit unit = Unit::share;
};

/// A point and what it was measured in. Nothing is owned.
struct PointSubject {
  const results::RunData& run;
  const results::CalibrationData& calibration;
  const PointReport& point;
  std::optional<double> launch_spread{};  ///< of a point over several launches
};

/// What a rule says of one point or run, before points of a curve are put together.
struct Judgement {
  std::optional<double> severity{};  ///< as of a Finding
  std::optional<double> size{};      ///< likewise: where there is no severity
  std::string sentence{};            ///< without the rank count
  std::vector<Evidence> evidence{};
  std::string next_step{};
};

/// Of which points a rule speaks. Points that failed, were skipped or are known to be wrong are
/// spoken of by none.
enum class Scope : std::uint8_t {
  sound,   ///< whose times are the machine's: no label oversubscribed, shared-gpu or injected
  faults,  ///< those and points with an injected fault, which the rule is to find
  run,     ///< the run as a whole
};

struct Rule {
  std::string_view name;      ///< "communication-ratio"
  std::string_view looks_at;  ///< one clause
  std::span<const Threshold> thresholds;
  std::string_view source;  ///< of the rule and its thresholds: a title, or a page of docs/
  Scope scope = Scope::sound;
  Concern concern = Concern::program;
  std::string_view instead_of{};  ///< the rule that is silent where this one speaks; "" = none
  /// One of them, by scope; the other is null.
  std::optional<Judgement> (*judge_point)(const PointSubject& subject, const Rule& rule) = nullptr;
  std::optional<Judgement> (*judge_run)(const RunReport& run, const Rule& rule) = nullptr;
};

/// All of them; the one table.
[[nodiscard]] std::span<const Rule> rules();

/// The value of a rule's threshold. Throws std::out_of_range for one that it has not.
[[nodiscard]] double threshold_of(const Rule& rule, std::string_view what);

}  // namespace isoscale::analysis
