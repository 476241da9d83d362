// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/value_units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "units/quantity_text.hpp"

namespace isoscale::analysis {
namespace {

std::string bytes_text(double bytes) {
  if (!(bytes >= 0 && bytes < 0x1p63)) return "—";
  return units::format(units::Bytes{static_cast<std::uint64_t>(std::llround(bytes))});
}

constexpr double most_whole = 1e15;  ///< larger numbers are shown with an exponent
constexpr double freezing = 273.15;  ///< 0 °C in K

std::string count_text(double value) {
  const bool is_whole = value == std::round(value) && std::abs(value) < most_whole;
  return is_whole ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value);
}

std::string without_blank(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

template <class Quantity>
std::string quantity_text(double value) {
  return units::format(Quantity{value});
}

/// A unit, the name of the form in which people see it (see value_units.hpp), its name in the JSON
/// report, and the function that writes a value for people.
struct Form {
  Unit unit;
  std::string_view form, name;
  std::string (*text)(double value);
};
constexpr std::array<Form, 19> forms{{
    {Unit::share, "share", "1", [](double value) { return units::format_percent(value); }},
    {Unit::factor, "factor", "1", [](double value) { return fmt::format("{:.2f} times", value); }},
    {Unit::ratio, "ratio", "1", [](double value) { return fmt::format("{:.2f}", value); }},
    {Unit::count, "count", "1", count_text},
    {Unit::digits, "digits", "1", [](double value) { return fmt::format("{:.4g}", value); }},
    {Unit::prefixed, "prefixed", "1",
     [](double value) { return without_blank(units::format_count(value, "")); }},
    {Unit::seconds, "seconds", "s", quantity_text<units::Seconds>},
    {Unit::bytes, "bytes", "B", bytes_text},
    {Unit::bandwidth, "bandwidth", "B/s", quantity_text<units::BytesPerSecond>},
    {Unit::flop, "flop", "FLOP", quantity_text<units::Flops>},
    {Unit::flop_rate, "flop_rate", "FLOP/s", quantity_text<units::FlopsPerSecond>},
    {Unit::flop_per_byte, "flop_per_byte", "FLOP/B",
     [](double value) { return fmt::format("{:.3g} FLOP/B", value); }},
    {Unit::hertz, "hertz", "Hz", [](double value) { return units::format_prefixed(value, "Hz"); }},
    {Unit::token_rate, "token_rate", "tokens/s",
     [](double value) { return units::format_count(value, "tokens/s"); }},
    {Unit::request_rate, "request_rate", "requests/s",
     [](double value) { return units::format_count(value, "requests/s"); }},
    {Unit::watts, "watts", "W", [](double value) { return units::format_prefixed(value, "W"); }},
    {Unit::joules, "joules", "J", [](double value) { return units::format_prefixed(value, "J"); }},
    {Unit::kelvin, "kelvin", "K",
     [](double value) { return fmt::format("{:.0f} °C", value - freezing); }},
    {Unit::text, "text", "text", [](double /*value*/) { return std::string{}; }},
}};
static_assert(std::ranges::is_sorted(forms, {}, &Form::unit), "the order is that of Unit");

}  // namespace

std::string_view form(Unit unit) { return forms.at(static_cast<std::size_t>(unit)).form; }

std::string_view name(Unit unit) { return forms.at(static_cast<std::size_t>(unit)).name; }

std::string value_text(double value, Unit unit) {
  return forms.at(static_cast<std::size_t>(unit)).text(value);
}

}  // namespace isoscale::analysis
