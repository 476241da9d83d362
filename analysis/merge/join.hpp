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
namespace isoscale::analysis {

/// A point as one launch measured it. Neither is owned.
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
  /// A point is that of its typical launch, the one nearest to the median. Its step time is over
  /// launches (see over_launches: the samples are launches), and what follows from it is as well:
  /// throughput, FLOP/s, speed-up, efficiency, laws.
  Curve curve;
  std::vector<std::vector<LaunchPoint>> launches;  ///< of each point
  std::vector<LeftOut> left_out;
  std::vector<std::string> apart;  ///< why other curves of like points were not joined to it
};

/// Absent below 2 launches.
[[nodiscard]] std::optional<double> spread_of(const PointReport& joined);

struct Joined {
  std::vector<JoinedCurve> curves;
};

/// Says which points of a launch count. Sound ones alone: others' times are not the machine's. Or
/// all that have times, to set like beside like; labels are then part of what makes points the
/// same.
enum class Counted : std::uint8_t { sound, all };

/// Joins curves of like experiments (see are_alike) on like machines. Launches that measured the
/// same ranks with another mesh, other options or on another number of nodes are of curves of their
/// own. Counted are points that are ok, not known to be wrong, and, but for Counted::all, whose
/// label does not say that their times are not the machine's; a launch labelled few-steps only
/// where all of a point are. Counted::all keeps it: where launches are compared, what few steps
/// add to the scatter of launches is in the interval. A curve may be left without any. `reports`
/// outlives the result and stays where it is.
[[nodiscard]] Joined join(std::span<const RunReport> reports, const ReportOptions& options,
                          Counted counted = Counted::sound);

/// The place of a launch's point among the joined ones.
struct JoinedPlace {
  const JoinedCurve* curve = nullptr;
  const PointReport* joined = nullptr;  ///< null where it was left out
  std::size_t launches = 0;             ///< of the joined point
  std::string left_out;                 ///< why; "" where it was not
};
/// Absent for what is on no curve.
[[nodiscard]] std::optional<JoinedPlace> place_of(const Joined& joined, const PointReport& point);

/// The launches that a report is made from. Neither runs nor joined curves are owned.
struct Report {
  std::span<const RunReport> runs;
  Joined joined{};
  std::vector<std::string> warnings{};
  Index index{};  ///< of the runs, in their order, and of the files that gave none
};

}  // namespace isoscale::analysis
