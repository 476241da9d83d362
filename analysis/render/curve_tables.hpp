// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/merge/join.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/text_and_markdown.hpp"
#include "analysis/report.hpp"

/// Builds the tables of a curve, which one launch measured or which is joined over several
/// launches. All text is escaped. Callers leave out the tables without rows.
namespace isoscale::analysis::render {

using Points = std::vector<const PointReport*>;

/// Returns the points with a breakdown.
[[nodiscard]] Points traced_points(const Curve& curve);

/// Returns the launches whose breakdowns the joined points show, as the end of a title: ", launch
/// 2" or ", launch 2 on 4 ranks, launch 5 on 8 and 16 ranks"; "" for points of a single launch.
[[nodiscard]] std::string of_launches(const Points& points);

/// Returns the tables of lost time by cause and of the tree of POP efficiencies, with one column
/// per rank count. For the largest traced point there are also tables of the step by phase, mesh
/// axes and layer. Only tables of `sections` are included.
[[nodiscard]] std::vector<TitledTable> cause_tables(const Curve& curve,
                                                    const Sections& sections = {});

/// Returns the tables of the parallel strategies in use, one column per rank count: utilisation of
/// replicas with different shares of the batch, copies of offloaded data, and the bubble of a
/// pipeline compared with its formula. The list is empty for curves with none of these.
[[nodiscard]] std::vector<TitledTable> strategy_tables(const Curve& curve);

/// Returns the step time, throughput and efficiency of every point: over all launches if the curve
/// is joined, and of its only launch if `joined` is null.
[[nodiscard]] TitledTable scaling_table(const Curve& curve, const merge::JoinedCurve* joined);

/// Returns the step times of each launch at the points that several launches measured. The table
/// has no rows if there are no such points, or too many launches to give each a column.
[[nodiscard]] TitledTable times_table(const merge::JoinedCurve& joined,
                                      std::span<const RunReport> reports);

/// Returns the lines below the tables of a joined curve: its baseline, the points that were left
/// out, the limits of points that a single launch measured, and causes.
[[nodiscard]] Facts joined_remarks(const merge::JoinedCurve& joined,
                                   std::span<const RunReport> reports);

/// Explains the terms of the tables of joined curves, one sentence each.
[[nodiscard]] std::vector<std::string> joined_key();

}  // namespace isoscale::analysis::render
