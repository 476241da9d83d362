// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/advice/findings.hpp"
#include "analysis/breakdown/breakdown.hpp"
#include "analysis/report.hpp"
#include "mesh/mesh.hpp"
#include "results/records/run_data.hpp"

/// Declares the rules that produce findings: their table, the functions that judge, and facts about
/// points that several rules need.
namespace isoscale::analysis::advice {

/// A number that a rule compares measured values with. docs/findings.md lists all thresholds.
struct Threshold {
  std::string_view what;
  double value = 0;
  Unit unit = Unit::share;
};

/// A point to judge, with the run and the calibration that it belongs to. Nothing is owned.
struct PointSubject {
  const results::RunData& run;
  const results::CalibrationData& calibration;
  const PointReport& point;
  std::optional<double> launch_spread{};  ///< see merge::spread_of; absent for a single launch
};

/// The result of a rule for one point or run. The judgements of a curve's points are merged into
/// one Finding.
struct Judgement {
  std::optional<double> severity{};  ///< as in Finding
  std::optional<double> size{};      ///< as in Finding
  std::string sentence{};            ///< without the rank count
  std::vector<Evidence> evidence{};
  std::string next_step{};
};

/// The points that a rule judges. No rule judges points that failed, were skipped or did not pass
/// verification.
enum class Scope : std::uint8_t {
  sound,   ///< points without the labels oversubscribed, shared-gpu and injected
  faults,  ///< sound points, and points with an injected fault, which the rule should detect
  run,     ///< the run as a whole
};

struct Rule {
  std::string_view name;      ///< "communication-ratio"
  std::string_view looks_at;  ///< one clause on what the rule examines
  std::span<const Threshold> thresholds;
  std::string_view source;  ///< where rule and thresholds come from: a title, a page of docs/
  Scope scope = Scope::sound;
  Concern concern = Concern::program;
  std::string_view instead_of{};  ///< if both rules apply, this one replaces that rule; "" = none
  /// The function that judges, by scope: one of these is set, the other is null.
  std::optional<Judgement> (*judge_point)(const PointSubject& subject, const Rule& rule) = nullptr;
  std::optional<Judgement> (*judge_run)(const RunReport& run, const Rule& rule) = nullptr;
};

/// Returns the table of all rules.
[[nodiscard]] std::span<const Rule> rules();

/// Returns the value of the rule's threshold with the name `what`. Throws std::out_of_range if
/// there is none.
[[nodiscard]] double threshold_of(const Rule& rule, std::string_view what);

/// Returns the point's option `key` as text; "" where the workload has no such option.
[[nodiscard]] std::string option_of(const results::PointData& point, const std::string& key);
/// These return an option, or a size of the model, as a number; absent if it is not a whole number
/// of at least 1.
[[nodiscard]] std::optional<double> count_option(const results::PointData& point,
                                                 const std::string& key);
[[nodiscard]] std::optional<double> model_number(const results::PointData& point,
                                                 const std::string& key);

/// Returns the parts of the traced step, in seconds, that communicate along an axis. Collectives
/// along several axes are included if this axis is one of them.
[[nodiscard]] breakdown::Breakdown communication_along(const breakdown::BreakdownResult& breakdown,
                                                       mesh::Axis axis);

/// Returns the share of the traced step that GEMMs take on an average rank; absent without traces.
[[nodiscard]] std::optional<double> gemm_share(const PointReport& point);

/// The speed of a point's GEMMs.
struct GemmSpeed {
  double rate = 0;         ///< FLOP/s of one rank
  double flop_of_one = 0;  ///< mean over GEMMs
  bool alone = false;      ///< measured without communication (solo times), not in traced steps
};
/// Returns the speed of the GEMMs over all ranks that have solo times, or over the traced steps if
/// no rank has them. Absent without a breakdown.
[[nodiscard]] std::optional<GemmSpeed> gemm_speed(const PointReport& point);

/// Returns "rank 3 (node17)" for a rank of the point: MPI's rank, and the host where it is known.
[[nodiscard]] std::string short_place(const results::RunData& run, const results::PointData& point,
                                      int rank);

/// Returns advice against exposed transfers along `axis`, which depends on the data transferred
/// (docs/strategies/): at most three clauses, each an option that the point's workload has and does
/// not use yet, or another mesh. Never empty.
[[nodiscard]] std::string advice_along(const PointReport& point, mesh::Axis axis);

}  // namespace isoscale::analysis::advice

/// The functions of the rules; the table and docs/findings.md describe each.
namespace isoscale::analysis::advice::judges {

using Said = std::optional<Judgement>;

Said communication_ratio(const PointSubject& subject, const Rule& rule);
Said missing_overlap(const PointSubject& subject, const Rule& rule);
Said small_buckets(const PointSubject& subject, const Rule& rule);
Said single_bucket(const PointSubject& subject, const Rule& rule);

Said small_gemms(const PointSubject& subject, const Rule& rule);
Said slower_gemms(const PointSubject& subject, const Rule& rule);
Said small_microbatch(const PointSubject& subject, const Rule& rule);
Said above_ceiling(const PointSubject& subject, const Rule& rule);
Said throttling(const PointSubject& subject, const Rule& rule);

Said few_microbatches(const PointSubject& subject, const Rule& rule);
Said bubble_beyond_schedule(const PointSubject& subject, const Rule& rule);

Said slow_rank(const PointSubject& subject, const Rule& rule);
Said slow_link(const PointSubject& subject, const Rule& rule);
Said imbalance(const PointSubject& subject, const Rule& rule);
Said noise(const PointSubject& subject, const Rule& rule);
Said wide_interval(const PointSubject& subject, const Rule& rule);
Said launch_spread(const PointSubject& subject, const Rule& rule);

Said slow_pair(const RunReport& run, const Rule& rule);
Said pcie_for_nvlink(const RunReport& run, const Rule& rule);
Said far_numa(const RunReport& run, const Rule& rule);

}  // namespace isoscale::analysis::advice::judges
