// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/merge/join.hpp"
#include "analysis/render/cells.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/text_table.hpp"
#include "analysis/report.hpp"

/// Tables of a curve, of one launch or joined over several, as text and markdown show them; all
/// text is escaped.
namespace isoscale::analysis {

using Points = std::vector<const PointReport*>;

/// The points with a breakdown.
[[nodiscard]] Points traced_points(const Curve& curve);

/// ", launch 2", ", launch 2 on 4 ranks, launch 5 on 8 and 16 ranks": whose breakdowns points over
/// several launches show; "" of one launch's own.
[[nodiscard]] std::string of_launches(const Points& points);

/// Tables of lost time by cause and of the tree of efficiencies, one column per rank count; of the
/// largest traced point tables of the step by phase, mesh axes and layer. Only those of `sections`.
[[nodiscard]] std::vector<TitledTable> cause_tables(const Curve& curve,
                                                    const Sections& sections = {});

/// Tables of the strategies that are asked for, one column per rank count: utilisation of replicas
/// with different shares of the batch, copies of what is offloaded, a pipeline's bubble beside its
/// formula. Empty for curves with none of these.
[[nodiscard]] std::vector<TitledTable> strategy_tables(const Curve& curve);

/// The curve over launches, then each launch's step times where points have several.
[[nodiscard]] std::vector<TitledTable> joined_tables(const JoinedCurve& joined,
                                                     std::span<const RunReport> reports);

/// Lines below the latter: what is compared, what was left out, what one launch does not tell,
/// causes.
[[nodiscard]] Facts joined_remarks(const JoinedCurve& joined, std::span<const RunReport> reports);

/// Says what the words of these tables mean, a sentence each.
[[nodiscard]] std::vector<std::string> joined_key();

}  // namespace isoscale::analysis
