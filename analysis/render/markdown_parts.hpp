// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/render/cells.hpp"
#include "analysis/render/text_table.hpp"

namespace isoscale::analysis {

using MarkdownCells = std::vector<std::string>;

/// `text` such that markdown shows it as it is.
[[nodiscard]] std::string literal(std::string_view text);
[[nodiscard]] std::string markdown_row(const MarkdownCells& cells);
/// Heading and rule of a table whose columns are numbers but for those named in `left`.
[[nodiscard]] std::string markdown_heading(const MarkdownCells& names,
                                           const std::vector<std::size_t>& left);
[[nodiscard]] std::string markdown_list(const Facts& facts);
[[nodiscard]] std::string markdown_tables(const std::vector<TitledTable>& tables);

}  // namespace isoscale::analysis
