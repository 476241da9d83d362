// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "analysis/experiment_and_machine_identity.hpp"
#include "analysis/predict/question.hpp"
#include "base/error.hpp"
#include "results/records/point_facts.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::analysis::predict {
namespace {

using results::PointData;
using settings::PredictCommand;
using Points = std::vector<const PointData*>;

/// Returns the points that have a time. Points whose times do not represent the machine, because of
/// shared cores or injected faults, are returned only if there are no others.
Points usable_points(const Curve& curve) {
  Points all, sound;
  for (const PointReport& point : curve.points) {
    if (!point.throughput || !point.step_time) continue;
    all.push_back(point.data);
    if (results::is_scaling_result(point.labels)) sound.push_back(point.data);
  }
  return sound.empty() ? all : sound;
}

[[noreturn]] void refuse_workload(const PredictCommand& command,
                                  const std::vector<std::string>& titles) {
  if (titles.empty()) {
    throw base::usage_error(
        "{}: no point of a training workload is ok, so no curve can be continued; measure "
        "one, as with: isoscale run --workload hybrid,calibrate",
        command.source.string());
  }
  throw base::usage_error("--workload {}: {} has no such curve; it has: {}", command.workload,
                          command.source.string(), fmt::join(titles, "; "));
}

/// True if the run planned `point` from this experiment of its configuration.
bool planned(const settings::Experiment& experiment, const workloads::Workload& workload,
             const PointData& point) {
  const bool alike = experiment.workload == point.workload && experiment.base.seed == point.seed &&
                     program::name(experiment.base.precision) == point.dtype &&
                     workloads::name(experiment.scaling) == point.scaling &&
                     mesh::name(experiment.placement) == point.placement;
  const bool has_model = workload.model_use != workloads::ModelUse::none;
  if (!alike || (has_model && experiment.base.model.name != point.model)) return false;
  try {
    const workloads::Request request =
        workload.scale(experiment.base, point.mesh, experiment.scaling);
    return workloads::all_options(workload.options, request.options) == full_options(point);
  } catch (const base::UsageError&) {
    return false;  // the point's mesh does not divide the experiment's batch
  }
}

void warn_of_unsound(const Points& points, std::vector<std::string>& warnings) {
  std::set<std::string> labels;
  for (const PointData* const point : points) {
    for (const std::string& label : results::unsound(point->labels)) labels.insert(label);
  }
  if (labels.empty()) return;
  warnings.push_back(
      fmt::format("the measured points are {}: their times are not those of a machine that scales, "
                  "and neither is what follows from them",
                  fmt::join(labels, ", ")));
}

}  // namespace

int strangeness(const PredictCommand& command, const PointData& point) {
  const int model = !command.model || command.model->name == point.model ? 0 : 1;
  const int precision =
      !command.precision || program::name(*command.precision) == point.dtype ? 0 : 1;
  const int scaling =
      !command.scaling || workloads::name(*command.scaling) == point.scaling ? 0 : 1;
  return 4 * model + 2 * precision + scaling;
}

ChosenCurve choose_curve(const PredictCommand& command, const std::vector<Curve>& curves,
                         std::vector<std::string>& warnings) {
  ChosenCurve chosen;
  std::vector<std::string> titles;
  for (const Curve& curve : curves) {
    Points points = usable_points(curve);
    if (points.empty()) continue;
    titles.push_back(curve.title);
    const PointData& point = *points.front();
    if (!command.workload.empty() && command.workload != point.workload) continue;
    const bool better = chosen.curve == nullptr ||
                        strangeness(command, point) < strangeness(command, *chosen.points.front());
    if (better) chosen = {.curve = &curve, .points = std::move(points)};
  }
  if (chosen.curve == nullptr) refuse_workload(command, titles);
  warn_of_unsound(chosen.points, warnings);
  std::erase(titles, chosen.curve->title);
  if (!titles.empty()) {
    warnings.push_back(fmt::format(
        "the run has {} more curve{}: {}; choose one with --workload, --model, --dtype or "
        "--scaling",
        titles.size(), titles.size() == 1 ? "" : "s", fmt::join(titles, "; ")));
  }
  return chosen;
}

settings::Experiment planned_experiment(const results::RunData& run, const std::string& source,
                                        const PointData& point) {
  const workloads::Workload& workload = workloads::find_workload(point.workload);
  const settings::RunConfig config = settings::from_toml(run.config_toml, source);
  for (const settings::Experiment& experiment : config.experiments) {
    if (planned(experiment, workload, point)) return experiment;
  }
  throw base::usage_error(
      "{}: its configuration does not say how its {} points were planned; it was written by "
      "another version ({}): measure again, or predict with that version",
      source, point.workload, run.isoscale_version);
}

}  // namespace isoscale::analysis::predict
