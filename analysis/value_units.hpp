// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace isoscale::analysis {

/// The units of the values in reports.
enum class Unit : std::uint8_t {
  share,      ///< 1.0 = all; shown as percent
  factor,     ///< "1.25 times"
  ratio,      ///< "1.25"
  count,      ///< a plain number
  digits,     ///< a plain number with four significant digits
  prefixed,   ///< "12.1 k", a number with an SI prefix
  seconds,    ///< s
  bytes,      ///< B
  bandwidth,  ///< B/s
  flop,       ///< FLOP
  flop_rate,  ///< FLOP/s
  flop_per_byte,
  hertz,         ///< Hz
  token_rate,    ///< tokens/s
  request_rate,  ///< requests/s
  watts,         ///< W
  joules,        ///< J
  kelvin,        ///< K; shown in °C
  text,          ///< words, no number
};
/// Returns the unit's name in the JSON report: "1", "s", "B", ...; "text" for words.
[[nodiscard]] std::string_view name(Unit unit);

/// Returns the name of the form in which reports for people write the unit: "share", "seconds", ...
[[nodiscard]] std::string_view form(Unit unit);

/// Returns a number with its unit as text: "22.0%", "1.50 MiB"; "" for Unit::text.
[[nodiscard]] std::string value_text(double value, Unit unit);

}  // namespace isoscale::analysis
