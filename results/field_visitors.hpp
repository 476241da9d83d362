// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "results/hdf5.hpp"
#include "results/run_data.hpp"

namespace isoscale::results {

// These functions check columns of a file before they are used as indices.

inline void require(bool holds, const char* what) {  // NOLINT: the condition itself is boolean
  if (!holds) throw base::Error(what);
}

inline void require_lengths(std::initializer_list<std::size_t> lengths, const char* what) {
  for (const std::size_t length : lengths) require(length == *lengths.begin(), what);
}

/// Requires that offsets of parts begin with 0, end with `total` and never fall.
inline void require_offsets(const std::vector<std::uint64_t>& offsets, std::size_t total,
                            const char* what) {
  require(!offsets.empty() && offsets.front() == 0 && offsets.back() == total &&
              std::is_sorted(offsets.begin(), offsets.end()),
          what);
}

/// Returns a number of a column; absent for NaN, which means not known.
inline std::optional<double> known(double value) {
  return std::isnan(value) ? std::nullopt : std::optional{value};
}

/// The visitor of layout.hpp that writes to a group.
class PutFields {
 public:
  explicit PutFields(hdf5::Group& group) : group_(group) {}

  /// Returns true, since files are always written in the newest form.
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

/// The visitor of layout.hpp that reads from a group. Throws base::Error for fields that are
/// missing or out of range.
class GetFields {
 public:
  /// Reads from `group`. `minor` is that of the schema version that the file was written with.
  GetFields(const hdf5::Group& group, int minor) : group_(group), minor_(minor) {}

  [[nodiscard]] bool has_since(int minor) const { return minor_ >= minor; }

  void attribute(const std::string& name, std::string& value) { value = group_.text(name); }
  void attribute(const std::string& name, int& value) {
    const std::int64_t wide = group_.integer(name);
    if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
      throw base::Error("attribute '" + name + "' is out of range");
    }
    value = static_cast<int>(wide);
  }
  void attribute(const std::string& name, std::int64_t& value) { value = group_.integer(name); }
  void attribute(const std::string& name, std::uint64_t& value) { value = group_.natural(name); }
  void attribute(const std::string& name, double& value) { value = group_.real(name); }
  void attribute(const std::string& name, bool& value) { value = group_.flag(name); }
  void attribute(const std::string& name, std::optional<bool>& value) {
    if (group_.has_attribute(name)) value = group_.flag(name);
  }
  void attribute(const std::string& name, std::optional<double>& value) {
    if (group_.has_attribute(name)) value = group_.real(name);
  }
  void attribute(const std::string& name, PointStatus& value) {
    const std::string text = group_.text(name);
    for (const PointStatus status : {PointStatus::ok, PointStatus::failed, PointStatus::skipped}) {
      if (text == results::name(status)) {
        value = status;
        return;
      }
    }
    throw base::Error("attribute '" + name + "' has the unknown value '" + text + "'");
  }

  void pairs(const std::string& name, std::map<std::string, std::string>& pairs) {
    const hdf5::Group group = group_.open_group(name);
    for (const std::string& key : group.attribute_names()) pairs[key] = group.text(key);
  }

  template <hdf5::Number T>
  void column(const std::string& name, std::vector<T>& values, const hdf5::About& /*about*/) {
    values = group_.read<T>(name);
  }
  void column(const std::string& name, std::vector<std::string>& texts,
              const hdf5::About& /*about*/) {
    texts = group_.read_texts(name);
  }
  void rows(const std::string& name, std::vector<std::vector<double>>& rows, int /*columns*/,
            const hdf5::About& /*about*/) {
    const hdf5::Table<double> table = group_.read_table<double>(name);
    if (table.columns == 0) {
      if (table.rows != 0) throw base::Error("dataset '" + name + "' has rows without columns");
      return;
    }
    for (auto row = table.values.begin(); row != table.values.end();) {
      const auto next = row + static_cast<std::ptrdiff_t>(table.columns);
      rows.emplace_back(row, next);
      row = next;
    }
  }
  void text(const std::string& name, std::string& text, const hdf5::About& /*about*/) {
    text = group_.read_text(name);
  }
  /// Reads codes. The file may number its enumerators differently, so codes are translated by their
  /// names. Throws base::Error for an unknown name.
  void codes(const std::string& name, std::vector<std::uint8_t>& codes,
             const std::vector<std::string>& names, const hdf5::About& /*about*/) {
    hdf5::Group::Codes stored = group_.read_codes(name);
    std::array<std::optional<std::uint8_t>, 256> ours{};
    for (std::size_t code = 0; code < stored.values.size(); ++code) {
      const auto found = std::find(names.begin(), names.end(), stored.values[code]);
      if (found != names.end()) ours[code] = static_cast<std::uint8_t>(found - names.begin());
    }
    for (std::uint8_t& code : stored.codes) {
      if (!ours[code]) {
        throw base::Error("dataset '" + name + "' has a code whose name is unknown: " +
                          (code < stored.values.size() ? stored.values[code] : "none"));
      }
      code = *ours[code];
    }
    codes = std::move(stored.codes);
  }

 private:
  const hdf5::Group& group_;  ///< not owned
  int minor_;
};

}  // namespace isoscale::results
