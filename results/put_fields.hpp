// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/hdf5.hpp"
#include "results/run_data.hpp"

namespace isoscale::results {

/// The visitor of layout.hpp that writes into a group.
class PutFields {
 public:
  explicit PutFields(hdf5::Group& group) : group_(group) {}

  /// Everything is written in the newest form.
  [[nodiscard]] static bool has_since(int /*minor*/) { return true; }

  void attribute(const std::string& name, const std::string& value) { group_.set(name, value); }
  void attribute(const std::string& name, int value) { group_.set(name, std::int64_t{value}); }
  void attribute(const std::string& name, std::int64_t value) { group_.set(name, value); }
  void attribute(const std::string& name, std::uint64_t value) { group_.set(name, value); }
  void attribute(const std::string& name, double value) { group_.set(name, value); }
  void attribute(const std::string& name, bool value) { group_.set_flag(name, value); }
  void attribute(const std::string& name, const std::optional<bool>& value) {
    if (value) group_.set_flag(name, *value);
  }
  void attribute(const std::string& name, const std::optional<double>& value) {
    if (value) group_.set(name, *value);
  }
  void attribute(const std::string& name, PointStatus value) {
    group_.set(name, results::name(value));
  }

  void pairs(const std::string& name, const std::map<std::string, std::string>& pairs) {
    hdf5::Group group = group_.create_group(name);
    for (const auto& [key, value] : pairs) group.set(key, value);
  }

  template <hdf5::Number T>
  void column(const std::string& name, const std::vector<T>& values, const hdf5::About& about) {
    group_.write(name, std::span<const T>{values}, about);
  }
  void column(const std::string& name, const std::vector<std::string>& texts,
              const hdf5::About& about) {
    group_.write_texts(name, texts, about);
  }
  void rows(const std::string& name, const std::vector<std::vector<double>>& rows, int columns,
            const hdf5::About& about) {
    hdf5::Table<double> table{
        .rows = rows.size(), .columns = static_cast<std::uint64_t>(columns), .values = {}};
    for (const auto& row : rows) table.values.insert(table.values.end(), row.begin(), row.end());
    group_.write_table(name, table, about);
  }
  void text(const std::string& name, const std::string& text, const hdf5::About& about) {
    group_.write_text(name, text, about);
  }
  void codes(const std::string& name, const std::vector<std::uint8_t>& codes,
             const std::vector<std::string>& names, const hdf5::About& about) {
    group_.write_codes(name, codes, names, about);
  }

 private:
  hdf5::Group& group_;  ///< not owned
};

}  // namespace isoscale::results
