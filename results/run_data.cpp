// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/run_data.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "results/layout.hpp"

namespace isoscale::results {

std::string_view name(PointStatus status) {
  static constexpr std::array<std::string_view, 3> names{"ok", "failed", "skipped"};
  return names[static_cast<std::size_t>(status)];
}

std::string text_of(const RowData& row, const std::string& key) {
  const auto found = row.text.find(key);
  return found == row.text.end() ? "" : found->second;
}

std::optional<double> number_of(const RowData& row, const std::string& key) {
  const auto found = row.number.find(key);
  if (found == row.number.end() || std::isnan(found->second)) return std::nullopt;
  return found->second;
}

std::vector<std::string> op_kind_names() {
  std::vector<std::string> names;
  for (std::size_t code = 0; code < program::op_kind_count; ++code) {
    names.emplace_back(program::name(static_cast<program::OpKind>(code)));
  }
  return names;
}

std::vector<std::string> phase_names() {
  std::vector<std::string> names;
  for (std::size_t code = 0; code < program::phase_count; ++code) {
    names.emplace_back(program::name(static_cast<program::Phase>(code)));
  }
  return names;
}

std::vector<std::string> axis_names() {
  std::vector<std::string> names;
  for (const mesh::Axis axis : mesh::all_axes) names.emplace_back(mesh::name(axis));
  return names;
}

std::vector<std::string> direction_names() { return {"send", "receive"}; }

std::vector<std::string> status_names() {
  std::vector<std::string> names;
  for (const PointStatus status : {PointStatus::ok, PointStatus::failed, PointStatus::skipped}) {
    names.emplace_back(name(status));
  }
  return names;
}

std::string_view unit_of_number(std::string_view key) {
  if (key == "bytes" || key.ends_with("_bytes")) return "B";
  if (key == "flop") return "FLOP";
  if (key == "sm_clock" || key == "sm_clock_min") return "Hz";
  if (key == "estimate" || key == "first_call" || key.ends_with("_seconds")) return "s";
  return "1";
}

std::string_view unit_of_fact(std::string_view key) {
  const auto holds = [&](std::string_view part) { return key.find(part) != key.npos; };
  if (holds("_clock")) return "Hz";
  if (holds("_power")) return "W";
  if (holds("memory_") || key.ends_with("_cache")) return "B";
  if (key.ends_with("_seconds")) return "s";
  return "1";
}

std::string point_group_name(int index) { return fmt::format("{:04}", index); }

}  // namespace isoscale::results
