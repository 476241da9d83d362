// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/catalog/index.hpp"
#include "analysis/identity.hpp"
#include "analysis/report.hpp"

/// Joins the reports of several launches to one curve for each experiment.
namespace isoscale::analysis::merge {

/// A point as one launch measured it. Nothing is owned.
struct LaunchPoint {
  const RunReport* run = nullptr;
  const PointReport* point = nullptr;
};

/// A point that is not counted among the launches of a curve.
struct LeftOut {
  LaunchPoint at;
  std::string reason;  ///< "oversubscribed", "few-steps: ...", "skipped: ..."
};

/// One experiment on one kind of machine over all launches.
struct JoinedCurve {
  Experiment experiment;
  std::string fingerprint;  ///< of the experiment and the kind of device
  Machine machine;
  /// The data of a point are those of its typical launch, the one nearest to the median. Only its
  /// step time is over launches (each launch is a sample, see over_launches), and so are the
  /// figures that follow from it: throughput, FLOP/s, speed-up, efficiency, laws.
  Curve curve;
  std::vector<std::vector<LaunchPoint>> launches;  ///< of each point
  std::vector<LeftOut> left_out;
  std::vector<std::string> apart;  ///< why other curves of like experiments were not joined to it
};

/// Returns the fields in which two points of one experiment with the same number of ranks are
/// unlike: mesh, work, options, labels that say that times are not the machine's, and injected
/// faults. Their nodes may differ in a comparison, but not on one curve.
[[nodiscard]] std::vector<UnlikeField> unlike_fields(const PointReport& here,
                                                     const PointReport& there);

/// Returns the relative spread between launches; absent below 2 launches.
[[nodiscard]] std::optional<double> spread_of(const PointReport& joined);

struct Joined {
  std::vector<JoinedCurve> curves;
};

/// Says which points of a launch count. `sound` takes only points without a label that says that
/// their times are not the machine's own (such as shared cores). `all` takes every point that has
/// times; like is compared with like, since points with different labels of this kind are never
/// joined.
enum class Counted : std::uint8_t { sound, all };

/// Joins curves of like experiments (see are_alike) on like machines. Launches that measured the
/// same rank count with another mesh, with other options or on another number of nodes go to
/// separate curves. A point counts if it is ok, has step times and is not known to be wrong. With
/// Counted::sound, its labels must not say that its times are not the machine's, and a launch
/// labelled few-steps counts only where all launches of the point have that label. With
/// Counted::all such launches count too, since in a comparison the interval includes the scatter
/// that few steps add; so do wrong points that have a throughput. A curve may be left without
/// points. `reports` must outlive the result and stay where it is.
[[nodiscard]] Joined join(std::span<const RunReport> reports, const ReportOptions& options,
                          Counted counted = Counted::sound);

/// The place of a launch's point among the joined points.
struct JoinedPlace {
  const JoinedCurve* curve = nullptr;
  const PointReport* joined = nullptr;  ///< null where the point was left out
  std::size_t launches = 0;             ///< of the joined point
  std::string left_out;                 ///< why it was left out; "" where it was not
};
/// Returns the place of a launch's point; absent if it is on no curve.
[[nodiscard]] std::optional<JoinedPlace> place_of(const Joined& joined, const PointReport& point);

/// The launches that a report is made from. The runs are not owned, and `joined` points to them.
struct Report {
  std::span<const RunReport> runs;
  Joined joined{};
  std::vector<std::string> warnings{};
  catalog::Index index{};  ///< of the runs, in their order, and of the unreadable files
};

}  // namespace isoscale::analysis::merge
