// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/report.hpp"
#include "config/command_line.hpp"
#include "results/run_data.hpp"

namespace isoscale::analysis {

/// How far what a command names is from what a point measured: 0 where it names nothing else.
[[nodiscard]] int strangeness(const config::PredictCommand& command,
                              const results::PointData& point);

struct ChosenCurve {
  const Curve* curve = nullptr;                   ///< not owned
  std::vector<const results::PointData*> points;  ///< with a time; ascending in ranks, at least one
};
/// The first curve that the command agrees with, or that differs least from what it names. Points
/// whose times are not the machine's own count only where there are no others. Says in `warnings`
/// what else the run has, and what is wrong with the points. Throws base::UsageError when there is
/// no curve.
[[nodiscard]] ChosenCurve choose_curve(const config::PredictCommand& command,
                                       const std::vector<Curve>& curves,
                                       std::vector<std::string>& warnings);

/// What `point` was planned from. Throws base::UsageError where the run does not say; `source`
/// names its file.
[[nodiscard]] config::Experiment planned_experiment(const results::RunData& run,
                                                    const std::string& source,
                                                    const results::PointData& point);

}  // namespace isoscale::analysis
