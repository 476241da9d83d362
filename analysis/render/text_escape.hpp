// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace isoscale::analysis {

/// `text` fit for a terminal: what could move the cursor, change colours, reorder or hide other
/// text (control characters, direction marks, bytes that are not UTF-8) is written as \n, \x1b,
/// \u202e.
[[nodiscard]] std::string escape(std::string_view text);

/// Columns on a terminal: code points, for escaped text without wide characters.
[[nodiscard]] std::size_t display_width(std::string_view text);

}  // namespace isoscale::analysis
