// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

namespace isoscale::analysis {

/// `value` to so many significant decimal digits, which is what JSON then has of it.
[[nodiscard]] inline double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  const int places = digits - 1 - exponent;
  // Dividing by a power of ten gives the number nearest to the decimal; multiplying by one below 1,
  // which has no exact form, does not.
  const double power = std::pow(10.0, std::abs(places));
  if (!std::isfinite(power)) return value;
  return places >= 0 ? std::round(value * power) / power : std::round(value / power) * power;
}

/// A number of a picture: six digits are finer than a pixel. Null where it is no number.
[[nodiscard]] inline nlohmann::ordered_json drawn(double value, int digits = 6) {
  constexpr double most_exact = 1e15;
  const double short_value = rounded(value, digits);
  if (!std::isfinite(short_value)) return {};
  if (short_value == std::trunc(short_value) && std::abs(short_value) < most_exact) {
    return static_cast<std::int64_t>(short_value);  // "2", not "2.0"
  }
  return short_value;
}

[[nodiscard]] inline nlohmann::ordered_json drawn(const std::optional<double>& value,
                                                  int digits = 6) {
  return value ? drawn(*value, digits) : nlohmann::ordered_json{};
}

}  // namespace isoscale::analysis
