// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/unit.hpp"

#include <fmt/format.h>

#include <cmath>

#include "units/text.hpp"

namespace isoscale::analysis {
namespace {

std::string bytes_text(double bytes) {
  if (!(bytes >= 0 && bytes < 0x1p63)) return "—";
  return units::format(units::Bytes{static_cast<std::uint64_t>(std::llround(bytes))});
}

constexpr double most_whole = 1e15;  ///< larger numbers are shown with an exponent
constexpr double freezing = 273.15;  ///< K

std::string without_blank(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

std::string_view name(Unit unit) {
  switch (unit) {
    case Unit::share:
    case Unit::factor:
    case Unit::ratio:
    case Unit::count:
    case Unit::digits:
    case Unit::prefixed:
      return "1";
    case Unit::seconds:
      return "s";
    case Unit::bytes:
      return "B";
    case Unit::bandwidth:
      return "B/s";
    case Unit::flop:
      return "FLOP";
    case Unit::flop_rate:
      return "FLOP/s";
    case Unit::flop_per_byte:
      return "FLOP/B";
    case Unit::hertz:
      return "Hz";
    case Unit::token_rate:
      return "tokens/s";
    case Unit::request_rate:
      return "requests/s";
    case Unit::watts:
      return "W";
    case Unit::joules:
      return "J";
    case Unit::kelvin:
      return "K";
    case Unit::text:
      break;
  }
  return "text";
}

std::string value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::share:
      return units::format_percent(value);
    case Unit::factor:
      return fmt::format("{:.2f} times", value);
    case Unit::ratio:
      return fmt::format("{:.2f}", value);
    case Unit::count:
      return value == std::round(value) && std::abs(value) < most_whole
                 ? fmt::format("{:.0f}", value)
                 : fmt::format("{:.6g}", value);
    case Unit::digits:
      return fmt::format("{:.4g}", value);
    case Unit::prefixed:
      return without_blank(units::format_count(value, ""));
    case Unit::seconds:
      return units::format(units::Seconds{value});
    case Unit::bytes:
      return bytes_text(value);
    case Unit::bandwidth:
      return units::format(units::BytesPerSecond{value});
    case Unit::flop:
      return units::format(units::Flops{value});
    case Unit::flop_rate:
      return units::format(units::FlopsPerSecond{value});
    case Unit::flop_per_byte:
      return fmt::format("{:.3g} FLOP/B", value);
    case Unit::hertz:
    case Unit::watts:
    case Unit::joules:
      return units::format_prefixed(value, name(unit));
    case Unit::kelvin:
      return fmt::format("{:.0f} °C", value - freezing);
    case Unit::token_rate:
    case Unit::request_rate:
      return units::format_count(value, name(unit));
    case Unit::text:
      break;
  }
  return "";
}

}  // namespace isoscale::analysis
