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

}  // namespace isoscale::analysis
