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

/// The rules of the advice: their table, facts about points that several rules need, and the
/// functions that judge.
namespace isoscale::analysis::advice {

/// A number that a rule compares measured values with; docs/findings.md lists it too.
struct Threshold {
  std::string_view what;
  double value = 0;
  Unit unit = Unit::share;
};

/// A point with the run and the calibration that it was measured in. Nothing is owned.
struct PointSubject {
  const results::RunData& run;
  const results::CalibrationData& calibration;
  const PointReport& point;
  std::optional<double> launch_spread{};  ///< spread between launches; absent for a single launch
};

/// A rule's judgement of one point or run, before the points of a curve are merged.
struct Judgement {
  std::optional<double> severity{};  ///< as in Finding
  std::optional<double> size{};      ///< as in Finding: where there is no severity
  std::string sentence{};            ///< without the rank count
  std::vector<Evidence> evidence{};
  std::string next_step{};
};

/// The points that a rule judges. No rule judges points that failed, were skipped or did not pass
/// verification.
enum class Scope : std::uint8_t {
  sound,  ///< points whose times are the machine's: no label oversubscribed, shared-gpu or injected
  faults,  ///< sound points, and those with an injected fault, which the rule is to detect
  run,     ///< the run as a whole
};

struct Rule {
  std::string_view name;      ///< "communication-ratio"
  std::string_view looks_at;  ///< one clause on what the rule examines
  std::span<const Threshold> thresholds;
  std::string_view source;  ///< where rule and thresholds come from: a title, a page of docs/
  Scope scope = Scope::sound;
  Concern concern = Concern::program;
  std::string_view instead_of{};  ///< the rule that this one replaces where both apply; "" = none
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
/// Returns an option, or a number of the model, as a whole number of at least 1; absent if it is
/// not one.
[[nodiscard]] std::optional<double> count_option(const results::PointData& point,
                                                 const std::string& key);
[[nodiscard]] std::optional<double> model_number(const results::PointData& point,
                                                 const std::string& key);

/// Returns the communication along an axis, alone or together with other axes; seconds of the
/// traced step.
[[nodiscard]] breakdown::Breakdown communication_along(const breakdown::BreakdownResult& breakdown,
                                                       mesh::Axis axis);

/// Returns the share of the traced step that GEMMs take on an average rank; absent without traces.
[[nodiscard]] std::optional<double> gemm_share(const PointReport& point);

/// The speed of a point's GEMMs: played without communication (solo times), else as traced.
struct GemmSpeed {
  double rate = 0;         ///< FLOP/s of one rank
  double flop_of_one = 0;  ///< mean over GEMMs
  bool alone = false;      ///< from solo times
};
/// Returns the speed over the traced ranks, from their solo times if there are any. Absent without
/// a breakdown.
[[nodiscard]] std::optional<GemmSpeed> gemm_speed(const PointReport& point);

/// Returns "rank 3 (node17)" for a rank of the point: MPI's rank, and the host where it is known.
[[nodiscard]] std::string short_place(const results::RunData& run, const results::PointData& point,
                                      int rank);

/// Returns advice against exposed transfers along `axis`, by what is transferred there
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
