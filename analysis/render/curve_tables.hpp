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

/// Tables of a curve, of one launch or joined over several; all text is escaped. Tables without
/// rows are to be left out.
namespace isoscale::analysis::render {

using Points = std::vector<const PointReport*>;

/// Returns the points with a breakdown.
[[nodiscard]] Points traced_points(const Curve& curve);

/// Returns ", launch 2", ", launch 2 on 4 ranks, launch 5 on 8 and 16 ranks": the launches whose
/// breakdowns joined points show; "" for points of a single launch.
[[nodiscard]] std::string of_launches(const Points& points);

/// Returns the tables of lost time by cause and of the tree of efficiencies, one column per rank
/// count; for the largest traced point also the step by phase, mesh axes and layer. Only tables of
/// `sections` are included.
[[nodiscard]] std::vector<TitledTable> cause_tables(const Curve& curve,
                                                    const Sections& sections = {});

/// Returns the tables of the strategies in use, one column per rank count: utilisation of replicas
/// with different shares of the batch, copies of offloaded data, a pipeline's bubble compared with
/// its formula. Empty for curves with none of these.
[[nodiscard]] std::vector<TitledTable> strategy_tables(const Curve& curve);

/// Returns times, throughput and efficiency of every point: those over launches where the curve is
/// joined, else (`joined` is null) those of its one launch.
[[nodiscard]] TitledTable scaling_table(const Curve& curve, const merge::JoinedCurve* joined);

/// Returns each launch's step times at the points that have several launches; no rows where there
/// are none, or too many launches for columns of their own.
[[nodiscard]] TitledTable times_table(const merge::JoinedCurve& joined,
                                      std::span<const RunReport> reports);

/// Returns the lines below the tables of a joined curve: what efficiency is relative to, what was
/// left out, what a single launch cannot show, and causes.
[[nodiscard]] Facts joined_remarks(const merge::JoinedCurve& joined,
                                   std::span<const RunReport> reports);

/// Explains the terms of the tables of joined curves, one sentence each.
[[nodiscard]] std::vector<std::string> joined_key();

}  // namespace isoscale::analysis::render
