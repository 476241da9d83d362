// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// A key that the parser of data sheets or software profiles reads.
struct SheetKey {
  std::string key, meaning;
  bool needed = false;  ///< it must be present whenever its table is
};

/// Returns all keys of a data sheet that the parser reads, in alphabetical order.
[[nodiscard]] std::vector<SheetKey> system_keys();
/// Returns all keys of a software profile that the parser reads, in alphabetical order.
[[nodiscard]] std::vector<SheetKey> software_keys();
/// True for the name of a built-in data sheet, as `isoscale list systems` prints it.
[[nodiscard]] bool is_system(std::string_view name);
/// Reads the data sheet of a machine: a built-in one by its name, or a file whose name ends in
/// .toml (analysis/systems/README.md describes the keys). Throws base::UsageError for an unknown
/// name (with the most similar known name) and for a missing, unknown or impossible value (with
/// file, line, key and reason).
[[nodiscard]] simulate::Machine load_system(std::string_view name_or_path);
/// Reads the profile of a training software in the same way as load_system()
/// (analysis/software/README.md describes the keys).
[[nodiscard]] simulate::Software load_software(std::string_view name_or_path);
/// Parses the text of a data sheet. `origin` is the file name for error messages.
[[nodiscard]] simulate::Machine parse_system(std::string_view toml, std::string_view origin);
/// Parses the text of a software profile in the same way as parse_system().
[[nodiscard]] simulate::Software parse_software(std::string_view toml, std::string_view origin);

}  // namespace isoscale::analysis::predict
