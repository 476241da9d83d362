// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/catalog/run_index.hpp"
#include "analysis/experiment_and_machine_identity.hpp"
#include "analysis/report.hpp"

/// Joins the reports of several launches to one curve for each experiment.
namespace isoscale::analysis::merge {

/// A point as measured by one launch. The struct owns neither the run nor the point.
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
  std::string fingerprint;  ///< text that identifies the experiment and the device
  Machine machine;
  /// The step time of a point is the median over its launches, each of which is one sample (see
  /// statistics::over_launches); throughput, FLOP/s, speed-up, efficiency and scaling laws follow
  /// from it. The steps are those of all launches, and the point has the label few-steps if one of
  /// them has it. Other values are those of the launch whose step time is nearest to the median.
  Curve curve;
  std::vector<std::vector<LaunchPoint>> launches;  ///< for each point of `curve`, its launches
  std::vector<LeftOut> left_out;
  std::vector<std::string> apart;  ///< why similar curves were not joined with this one
};

/// Returns the relative spread of the step time between launches, (maximum - minimum) / median;
/// absent for fewer than 2 launches.
[[nodiscard]] std::optional<double> spread_of(const PointReport& joined);

struct Joined {
  std::vector<JoinedCurve> curves;
};

/// Selects the points of a launch that are included in joined curves: `sound` excludes those with
/// unsound labels (point_facts.hpp), `all` does not. Points with different ones are never joined.
enum class Counted : std::uint8_t { sound, all };

/// Joins curves on equal machines whose experiments agree in all fields that must not differ on a
/// curve (are_alike). Launches that measured the same rank count with another mesh, with other
/// options or on another number of nodes go to separate curves. A point is included if it is ok,
/// has step times and is not known to be wrong.
/// - Counted::sound also leaves out the launches of a point that are labelled few-steps, unless all
///   of its launches are.
/// - Counted::all includes these launches, since the interval of a comparison contains the scatter
///   that few steps add. It also includes points with wrong results if they have a throughput.
/// A curve may have no points. `reports` must outlive the result and must not move in memory.
[[nodiscard]] Joined join(std::span<const RunReport> reports, const ReportOptions& options,
                          Counted counted = Counted::sound);

/// The place of a launch's point among the joined curves.
struct JoinedPlace {
  const JoinedCurve* curve = nullptr;
  const PointReport* joined = nullptr;  ///< null if the point was left out
  std::size_t launches = 0;             ///< number of launches that the joined point has
  std::string left_out{};               ///< why the point was left out; "" if it was not
};
/// Returns the place of a launch's point; absent if the point belongs to no joined curve.
[[nodiscard]] std::optional<JoinedPlace> place_of(const Joined& joined, const PointReport& point);

/// The input of a report on several launches. The runs are not owned, and `joined` points to them.
struct Report {
  std::span<const RunReport> runs;
  Joined joined{};
  std::vector<std::string> warnings{};
  catalog::Index index{};  ///< lists the runs, in their order, and the files that could not be read
};

}  // namespace isoscale::analysis::merge
