// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"
#include "analysis/report.hpp"

/// What reports for people say of causes; text and markdown only arrange it.
namespace isoscale::analysis {

/// Of a curve: lost time by cause and the tree of efficiencies, one column per rank count; of its
/// largest traced point: where the step went by phase, mesh axes and layer.
[[nodiscard]] std::vector<TitledTable> cause_tables(const Curve& curve);

/// Lines below them: findings of its points, laws, what could not be separated.
[[nodiscard]] Facts cause_remarks(const Curve& curve);

}  // namespace isoscale::analysis
