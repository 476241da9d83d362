// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace isoscale::analysis {

/// Characters of one text that are shown to people: what a program writes itself is shorter.
inline constexpr std::size_t most_shown = 1000;
/// For what is read by programs.
inline constexpr std::size_t whole_text = std::string_view::npos;

/// `text` fit for a terminal: what could move the cursor, change colours, reorder or hide other
/// text (control characters, direction marks, bytes that are not UTF-8) is written as \n, \x1b,
/// \u202e. Of more than `most_shown` characters the first are shown, and how long all is:
/// "xxx… (of 1048576 bytes)".
[[nodiscard]] std::string escape(std::string_view text);
/// Likewise of more than `most`.
[[nodiscard]] std::string escape_up_to(std::string_view text, std::size_t most);

/// Columns on a terminal: code points, for escaped text without wide characters.
[[nodiscard]] std::size_t display_width(std::string_view text);

}  // namespace isoscale::analysis
