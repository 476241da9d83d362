// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include <toml++/toml.h>

/// What every reader and writer of TOML here shares.
namespace isoscale::workloads {

/// Throws base::UsageError "ORIGIN:LINE: ..." when `text` is no TOML.
[[nodiscard]] toml::table parse_toml(std::string_view text, std::string_view origin);

/// "ORIGIN:LINE", or "ORIGIN" for a node that stands nowhere.
[[nodiscard]] std::string place_of(std::string_view origin, const toml::source_region& region);

/// `text` as a TOML string on one line, quotes included.
[[nodiscard]] std::string toml_string(std::string_view text);

/// The whole of a small text file. Throws base::UsageError when it cannot be read, or is larger
/// than any `kind` ("model file") would be.
[[nodiscard]] std::string read_small_file(const std::filesystem::path& path, std::string_view kind);

}  // namespace isoscale::workloads
