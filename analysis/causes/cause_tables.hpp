// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "analysis/render/cells.hpp"
#include "analysis/render/sections.hpp"
#include "analysis/render/text_table.hpp"
#include "analysis/report.hpp"

/// What reports for people say of causes; text and markdown only arrange it.
namespace isoscale::analysis {

using Points = std::vector<const PointReport*>;

/// Those with a breakdown.
[[nodiscard]] Points traced_points(const Curve& curve);

/// ", launch 2", ", launch 2 on 4 ranks, launch 5 on 8 and 16 ranks": whose breakdowns points over
/// several launches show; "" of one launch's own.
[[nodiscard]] std::string of_launches(const Points& points);

/// Of a curve: lost time by cause and the tree of efficiencies, one column per rank count; of its
/// largest traced point: where the step went by phase, mesh axes and layer. Those of the sections.
[[nodiscard]] std::vector<TitledTable> cause_tables(const Curve& curve,
                                                    const Sections& sections = {});

/// Lines below them: named causes of its points, laws, what could not be separated.
[[nodiscard]] Facts cause_remarks(const Curve& curve);

}  // namespace isoscale::analysis
