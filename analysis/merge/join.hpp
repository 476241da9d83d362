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

/// A point as measured by one launch. Nothing is owned.
struct LaunchPoint {
  const RunReport* run = nullptr;
  const PointReport* point = nullptr;
};

/// A point of a launch that a joined curve does not include.
struct LeftOut {
  LaunchPoint at;
  std::string reason;  ///< "oversubscribed", "few-steps: ...", "skipped: ..."
};

/// The curve of one experiment on one kind of machine, over all launches.
struct JoinedCurve {
  Experiment experiment;
  std::string fingerprint;  ///< identifies experiment and kind of device
  Machine machine;
  /// The step time of a point is computed over launches, with each launch as one sample (see
  /// statistics::over_launches); throughput, FLOP/s, speed-up, efficiency and laws follow from it.
  /// All other values of a point are those of its typical launch, whose step time is nearest to the
  /// median.
  Curve curve;
  std::vector<std::vector<LaunchPoint>> launches;  ///< per point, its launches
  std::vector<LeftOut> left_out;
  std::vector<std::string> apart;  ///< why curves of like experiments were not joined with this one
};

/// Returns the relative spread of the step time between launches, (maximum - minimum) / median;
/// absent for fewer than 2 launches.
[[nodiscard]] std::optional<double> spread_of(const PointReport& joined);

struct Joined {
  std::vector<JoinedCurve> curves;
};

/// Selects the points of a launch that count. `sound` excludes points with a label that says that
/// their times do not show the machine's own speed, such as shared cores. `all` includes every
/// point that has times. Points that differ in such labels are never joined with each other.
enum class Counted : std::uint8_t { sound, all };

/// Joins curves of like experiments (see are_alike) on equal machines. Launches that measured the
/// same rank count with another mesh, with other options or on another number of nodes go to
/// separate curves. A point counts if it is ok, has step times and is not known to be wrong.
/// With Counted::sound, it must also be sound (see Counted), and a launch labelled few-steps counts
/// only if all launches of the point have this label. With Counted::all such launches count too,
/// since the interval of a comparison includes the scatter that few steps add; wrong points also
/// count if they have a throughput. A curve may be left without points. `reports` must outlive the
/// result and must not move in memory.
[[nodiscard]] Joined join(std::span<const RunReport> reports, const ReportOptions& options,
                          Counted counted = Counted::sound);

/// The joined curve and point to which a point of a launch belongs.
struct JoinedPlace {
  const JoinedCurve* curve = nullptr;
  const PointReport* joined = nullptr;  ///< null if the point was left out
  std::size_t launches = 0;             ///< number of launches that the joined point has
  std::string left_out;                 ///< why the point was left out; "" if it was not
};
/// Returns the place of a launch's point; absent if the point belongs to no joined curve.
[[nodiscard]] std::optional<JoinedPlace> place_of(const Joined& joined, const PointReport& point);

/// The input of a report on several launches. The runs are not owned, and `joined` points to them.
struct Report {
  std::span<const RunReport> runs;
  Joined joined{};
  std::vector<std::string> warnings{};
  catalog::Index index{};  ///< of the runs, in their order, and of the unreadable files
};

}  // namespace isoscale::analysis::merge
