// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "workloads/api/workload.hpp"

namespace isoscale::workloads {

/// A TOML file of the source tree. Its text is compiled into the library, so the file is not needed
/// at run time.
struct Preset {
  std::string_view name;  ///< name of the file, without .toml
  std::string_view toml;
};

// Each of these functions returns the files of one folder, sorted by the name of the file.
[[nodiscard]] std::span<const Preset> model_presets();     ///< workloads/models/*.toml
[[nodiscard]] std::span<const Preset> suite_presets();     ///< workloads/suites/*.toml
[[nodiscard]] std::span<const Preset> system_presets();    ///< analysis/systems/*.toml
[[nodiscard]] std::span<const Preset> software_presets();  ///< analysis/software/*.toml

/// Parses TOML. Throws base::UsageError "ORIGIN:LINE: ..." if `text` is not valid.
[[nodiscard]] toml::table parse_toml(std::string_view text, std::string_view origin);

/// Parses the data sheet of a system, as in analysis/systems. The key `base`, if the sheet has it,
/// names a built-in sheet, from which all keys are taken that this sheet lacks; a list in this
/// sheet replaces the base's list as a whole. Throws base::UsageError for invalid TOML and for an
/// unknown base.
[[nodiscard]] toml::table parse_sheet(std::string_view text, std::string_view origin);

/// Returns "ORIGIN:LINE", or "ORIGIN" if the region has no line.
[[nodiscard]] std::string place_of(std::string_view origin, const toml::source_region& region);

/// Returns `text` as a TOML string in quotes, on one line.
[[nodiscard]] std::string toml_string(std::string_view text);

/// Returns the content of a text file. Throws base::UsageError if it cannot be read or is larger
/// than 1,000,000 bytes; the message says what `kind` of file it is ("model file").
[[nodiscard]] std::string read_small_file(const std::filesystem::path& path, std::string_view kind);

/// Reads a model from a parsed table. `origin`, the path of the file, is named in error messages.
/// If the table names no model, the file's name becomes the model's name, without .toml and without
/// characters that a model's name may not have. Throws base::UsageError, which lists the problems
/// of the table.
[[nodiscard]] Model read_model(const toml::table& table, std::string_view origin);

/// Returns a TOML text with the keys of a model and their values, one on each line. parse_model()
/// turns this text into the same model again.
[[nodiscard]] std::string to_toml(const Model& model);

}  // namespace isoscale::workloads
