// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <toml++/toml.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/machine.hpp"

namespace isoscale::analysis {

/// The range that a number of a system file lies in. `above` itself is not allowed, the limits are.
struct SheetRange {
  double least = 0, most = 0;
  std::string_view meaning;  ///< "bytes/s of the wire, one direction"
};

/// One key that the reader asked for.
struct SheetKey {
  std::string key, meaning;
  bool needed = false;  ///< it must be there wherever its table is
};

/// One table of a system file. Every refusal is a base::UsageError that names file, line, key and
/// reason; what nobody asked for by the time of refuse_unknown is refused too.
class SheetSection {
 public:
  /// Adds each key that is read, also from its sections, to `asked` where that is given; not owned.
  SheetSection(const toml::table& table, std::string_view origin, std::string name,
               std::vector<SheetKey>* asked = nullptr);

  [[nodiscard]] double number(std::string_view key, const SheetRange& range);
  [[nodiscard]] std::optional<double> optional_number(std::string_view key,
                                                      const SheetRange& range);
  [[nodiscard]] int count(std::string_view key, const SheetRange& range);
  [[nodiscard]] std::optional<int> optional_count(std::string_view key, const SheetRange& range);
  [[nodiscard]] std::string text(std::string_view key, std::string_view meaning);
  /// Reads an array of strings; empty when the key is not there.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::string_view meaning);
  /// One share for all sizes, or [[size, share], ...] ascending in size. Nothing when the key is
  /// not there.
  [[nodiscard]] std::vector<simulate::ReachedShare> shares(std::string_view key,
                                                           std::string_view meaning);
  [[nodiscard]] std::optional<SheetSection> section(std::string_view key);
  [[nodiscard]] SheetSection required_section(std::string_view key, std::string_view meaning);
  /// Reads an array of tables; empty when the key is not there.
  [[nodiscard]] std::vector<SheetSection> sections(std::string_view key);
  [[nodiscard]] std::vector<std::string> keys() const;

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

/// All keys of a data sheet, as the reader asks for them, in alphabetical order.
[[nodiscard]] std::vector<SheetKey> system_keys();
/// True for the name of a built-in data sheet, as `isoscale list systems` prints it.
[[nodiscard]] bool is_system(std::string_view name);
/// Reads the data sheet of a machine: a built-in one by its name, or a file whose name ends in
/// .toml (analysis/systems/README.md has the keys). Throws base::UsageError for an unknown name
/// (with the nearest one), and with file, line, key and reason for a missing, unknown or impossible
/// number.
[[nodiscard]] simulate::Machine load_system(std::string_view name_or_path);
/// `origin` names the text in errors.
[[nodiscard]] simulate::Machine parse_system(std::string_view toml, std::string_view origin);

}  // namespace isoscale::analysis
