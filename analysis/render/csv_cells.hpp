// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

/// What stands between the commas of CSV (RFC 4180).
namespace isoscale::analysis {

/// All of a text, escaped as for a terminal; one that a spreadsheet would take for a formula begins
/// with an apostrophe.
[[nodiscard]] std::string text_cell(std::string_view text);

/// The shortest text that reads back as the same number; empty = unknown.
[[nodiscard]] std::string number_cell(std::optional<double> number);

}  // namespace isoscale::analysis
