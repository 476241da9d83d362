// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <toml++/toml.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/machine.hpp"

namespace isoscale::analysis::predict {

/// The allowed range of a number in a system file, including both limits.
struct SheetRange {
  double least = 0, most = 0;
  std::string_view meaning;  ///< "bytes/s of the wire, one direction"
};

/// A key of a data sheet that the parser reads.
struct SheetKey {
  std::string key, meaning;
  bool needed = false;  ///< the key must be present if its table is
};

/// Reads one table of a system file. Each error is a base::UsageError that names file, line, key
/// and reason.
class SheetSection {
 public:
  /// Opens a table. If `asked` (not owned) is given, each key that is read from the table or its
  /// sections is added to it.
  SheetSection(const toml::table& table, std::string_view origin, std::string name,
               std::vector<SheetKey>* asked = nullptr);

  [[nodiscard]] double number(std::string_view key, const SheetRange& range);
  /// Reads a number; returns 0 when the key is absent.
  [[nodiscard]] double number_or_0(std::string_view key, const SheetRange& range);
  [[nodiscard]] int count(std::string_view key, const SheetRange& range);
  /// Reads a count; returns 0 when the key is absent.
  [[nodiscard]] int count_or_0(std::string_view key, const SheetRange& range);
  [[nodiscard]] std::string text(std::string_view key, std::string_view meaning);
  /// Reads an array of strings; empty when the key is absent.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::string_view meaning);
  /// Reads either one share for all sizes, or [[size, share], ...] in ascending order of size.
  /// Returns an empty list if the key is absent.
  [[nodiscard]] std::vector<simulate::ReachedShare> shares(std::string_view key,
                                                           std::string_view meaning);
  [[nodiscard]] std::optional<SheetSection> section(std::string_view key);
  [[nodiscard]] SheetSection required_section(std::string_view key, std::string_view meaning);
  /// Reads an array of tables; empty when the key is absent.
  [[nodiscard]] std::vector<SheetSection> sections(std::string_view key);
  [[nodiscard]] std::vector<std::string> keys() const;

  /// Reads the whole table by `part_of`, and refuses keys that this function does not read.
  template <class Part>
  [[nodiscard]] Part read(Part (*part_of)(SheetSection& section)) {
    Part part = part_of(*this);
    refuse_unknown();
    return part;
  }
  /// Throws for keys that were not read before.
  void refuse_unknown() const;
  [[noreturn]] void refuse(std::string_view key, std::string_view why) const;

 private:
  [[nodiscard]] const toml::node* find(std::string_view key, std::string_view meaning, bool needed);
  [[nodiscard]] std::string where(std::string_view key) const;
  [[nodiscard]] std::string full(std::string_view key) const;
  [[noreturn]] void refuse_missing(std::string_view key, std::string_view meaning) const;
  [[nodiscard]] int whole(double value, std::string_view key, const SheetRange& range) const;
  [[nodiscard]] double checked(const toml::node& node, std::string_view key,
                               const SheetRange& range) const;

  const toml::table* table_;
  std::string origin_, name_;
  std::vector<std::string> known_;
  std::vector<SheetKey>* asked_;
};

/// Returns all keys of a data sheet that the parser reads, in alphabetical order.
[[nodiscard]] std::vector<SheetKey> system_keys();
/// True for the name of a built-in data sheet, as `isoscale list systems` prints it.
[[nodiscard]] bool is_system(std::string_view name);
/// Reads the data sheet of a machine: a built-in one by its name, or a file whose name ends in
/// .toml (analysis/systems/README.md has the keys). Throws base::UsageError for an unknown name
/// (with the nearest one), and with file, line, key and reason for a missing, unknown or impossible
/// number.
[[nodiscard]] simulate::Machine load_system(std::string_view name_or_path);
/// Parses the text of a data sheet. `origin` names the text in error messages.
[[nodiscard]] simulate::Machine parse_system(std::string_view toml, std::string_view origin);

}  // namespace isoscale::analysis::predict
