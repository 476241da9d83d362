// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"

namespace isoscale::analysis {

/// One fact a line, indented by two, its key in a column.
[[nodiscard]] std::string lines(const Facts& facts);
[[nodiscard]] std::string titled(const TitledTable& part);
/// A title of a part of a report, underlined; an empty line before it.
[[nodiscard]] std::string heading(const std::string& title);

/// The parts of a step as one bar; cells go to the largest remainders, so that they sum to it.
[[nodiscard]] std::string breakdown_bar(const Breakdown& parts);
/// An efficiency, 1 being ideal; up to 120% is drawn. And the scale above such bars.
[[nodiscard]] std::string efficiency_bar(double efficiency);
[[nodiscard]] std::string efficiency_heading();

}  // namespace isoscale::analysis
