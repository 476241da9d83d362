// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

/// Values in JSON reports: null where there is none.
namespace isoscale::analysis {

/// Returns null for numbers that are not finite, since JSON has none.
template <class Number>
[[nodiscard]] nlohmann::ordered_json number_or_null(const std::optional<Number>& number) {
  if (!number || !std::isfinite(static_cast<double>(*number))) return {};
  return *number;
}

[[nodiscard]] inline nlohmann::ordered_json number_or_null(double number) {
  return number_or_null(std::optional{number});
}

/// Returns a count as an integer.
[[nodiscard]] inline nlohmann::ordered_json count_or_null(const std::optional<double>& count) {
  constexpr double most = 9e15;
  if (!count || !(std::abs(*count) <= most) || *count != std::floor(*count)) {
    return number_or_null(count);
  }
  return static_cast<std::int64_t>(*count);
}

[[nodiscard]] inline nlohmann::ordered_json text_or_null(const std::string& text) {
  if (text.empty()) return {};
  return text;
}

}  // namespace isoscale::analysis
