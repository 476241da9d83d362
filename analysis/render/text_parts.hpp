// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>

#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"

namespace isoscale::analysis {

/// One fact a line, indented by two, its key in a column.
[[nodiscard]] std::string lines(const Facts& facts);
[[nodiscard]] std::string titled(const TitledTable& part);
/// A title of a part of a report, underlined; an empty line before it.
[[nodiscard]] std::string heading(const std::string& title);

/// Escaped text in lines of at most `columns`, each after the indent; a word that is longer has a
/// line of its own. No line for no text.
[[nodiscard]] std::string in_lines(const std::string& text, std::size_t indent,
                                   std::size_t columns);
/// Escaped text of at most `columns` columns, with "…" at its end where it was longer.
[[nodiscard]] std::string shortened(const std::string& text, std::size_t columns);

/// The parts of a step as one bar; cells go to the largest remainders, so that they sum to it.
[[nodiscard]] std::string breakdown_bar(const Breakdown& parts);
/// An efficiency, 1 being ideal; up to 120% is drawn. And the scale above such bars.
[[nodiscard]] std::string efficiency_bar(double efficiency);
[[nodiscard]] std::string efficiency_heading();

}  // namespace isoscale::analysis
