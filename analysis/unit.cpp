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

}  // namespace

std::string_view name(Unit unit) {
  switch (unit) {
    case Unit::share:
    case Unit::factor:
    case Unit::count:
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
    case Unit::count:
      return fmt::format("{:.6g}", value);
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
      return units::format_prefixed(value, "Hz");
    case Unit::token_rate:
    case Unit::request_rate:
      return units::format_count(value, name(unit));
    case Unit::text:
      break;
  }
  return "";
}

}  // namespace isoscale::analysis
