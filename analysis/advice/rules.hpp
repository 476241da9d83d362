// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/advice/findings.hpp"
#include "analysis/report.hpp"
#include "results/records/run_data.hpp"

/// Declares the rules that produce findings, and facts about points that several rules need.
namespace isoscale::analysis::advice {

/// A number that a rule compares measured values with. docs/findings.md lists all thresholds.
struct Threshold {
  std::string_view what;
  double value = 0;
  Unit unit = Unit::share;
};

/// A point to judge, with its run and that run's calibration. The references must outlive it.
struct PointSubject {
  const results::RunData& run;
  const results::CalibrationData& calibration;
  const PointReport& point;
  std::optional<double> launch_spread{};  ///< merge::spread_of(); absent for a single launch
};

/// The answer of a rule about a point or a run; absent if the rule finds nothing. The rule sets
/// severity, size, sentence (without the rank count), evidence and next step. The findings about a
/// curve's points are merged into one.
using Said = std::optional<Finding>;

/// The points that a rule judges; never points that failed, were skipped or did not verify.
enum class Scope : std::uint8_t {
  sound,   ///< points without the labels oversubscribed, shared-gpu and injected
  faults,  ///< sound points, and points with an injected fault, which the rule should detect
};

struct Rule {
  std::string_view name;    ///< such as "communication-ratio"
  std::string_view source;  ///< where rule and thresholds come from: a title, a page of docs/
  std::array<Threshold, 4> thresholds{};  ///< unused entries have an empty `what`
  Scope scope = Scope::sound;
  Concern concern = Concern::program;
  /// The rule that this one replaces on points where both find something; "" = none.
  std::string_view instead_of{};
  /// One of these functions is set, the other is null: `judge_point` judges single points of
  /// `scope`, `judge_run` the run as a whole.
  Said (*judge_point)(const PointSubject& subject, const Rule& rule) = nullptr;
  Said (*judge_run)(const RunReport& run, const Rule& rule) = nullptr;

  /// Returns the value of the threshold `what`. Throws std::out_of_range if there is none.
  [[nodiscard]] double limit(std::string_view what) const;
};

/// Returns all rules: those of the three functions below, in this order. Findings that
/// would otherwise rank equal are sorted in the order of their rules.
[[nodiscard]] std::span<const Rule> rules();
[[nodiscard]] std::span<const Rule> communication_rules();
[[nodiscard]] std::span<const Rule> compute_rules();
[[nodiscard]] std::span<const Rule> machine_rules();

/// Returns a share as text: "22.0%".
[[nodiscard]] inline std::string percent(double share) { return value_text(share, Unit::share); }

/// Returns advice against exposed transfers along `axis`, which depends on the data transferred
/// (docs/strategies/): at most three clauses, such as an option to set, another mesh, or a larger
/// batch. Never empty.
[[nodiscard]] std::string advice_along(const PointReport& point, mesh::Axis axis);

/// Returns the number that the facts of a rank hold under `key`; absent if there is none.
[[nodiscard]] std::optional<double> number_of(const results::RankFacts& facts,
                                              const std::string& key);

/// Returns "rank 3 (node17)" for a rank of the point: its number in MPI_COMM_WORLD, and its host,
/// if known.
[[nodiscard]] std::string short_place(const results::RunData& run, const results::PointData& point,
                                      int rank);

}  // namespace isoscale::analysis::advice
