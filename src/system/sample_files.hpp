// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// Reading the small files of sysfs; what cannot be read is absent.
namespace isoscale::system {

/// The number that a text begins with, blanks aside.
[[nodiscard]] std::optional<double> leading_number(std::string_view text);
[[nodiscard]] std::optional<double> number_in(const std::filesystem::path& file);
/// The first line, trimmed.
[[nodiscard]] std::optional<std::string> line_in(const std::filesystem::path& file);

}  // namespace isoscale::system
