// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "units/quantity_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "base/text.hpp"

namespace isoscale::units {
namespace {

using base::lowered;

struct Unit {
  std::string_view name;
  double size;  ///< in bytes, seconds or FLOP/s
};
constexpr std::array byte_units{
    Unit{"", 1.0},       Unit{"B", 1.0},      Unit{"kB", 1e3},     Unit{"MB", 1e6},
    Unit{"GB", 1e9},     Unit{"TB", 1e12},    Unit{"KiB", 0x1p10}, Unit{"MiB", 0x1p20},
    Unit{"GiB", 0x1p30}, Unit{"TiB", 0x1p40},
};
constexpr std::array time_units{
    Unit{"", 1.0},    Unit{"s", 1.0},  Unit{"ms", 1e-3},  Unit{"us", 1e-6},  Unit{"\u00b5s", 1e-6},
    Unit{"ns", 1e-9}, Unit{"m", 60.0}, Unit{"min", 60.0}, Unit{"h", 3600.0},
};
constexpr std::array flop_units{
    Unit{"FLOP/s", 1.0},  Unit{"kFLOP/s", 1e3},  Unit{"MFLOP/s", 1e6},
    Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15},
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns the text without blanks and tabs at its ends. Line breaks stay, so that they are
/// refused.
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 40;
  return fmt::format("'{}'", base::printable(text, longest));
}

[[noreturn]] void refuse(std::string_view text, std::string_view why) {
  throw std::invalid_argument(fmt::format("{} {}", quoted(text), why));
}

/// Returns the reason why `unit` is not a unit of bytes.
std::string explain_unit(std::string_view unit) {
  const std::string small = lowered(unit);
  constexpr std::string_view prefixes = "kmgt";
  const auto prefix = small.empty() ? std::string_view::npos : prefixes.find(small.front());
  const bool abbreviated = small.size() == 1 || small == "kb";
  if (prefix != std::string_view::npos && abbreviated) {
    constexpr std::array<std::string_view, 4> decimal{"kB", "MB", "GB", "TB"};
    constexpr std::array<std::string_view, 4> binary{"KiB", "MiB", "GiB", "TiB"};
    return fmt::format("is ambiguous: write {} (10^{}) or {} (2^{})", decimal[prefix],
                       3 * (prefix + 1), binary[prefix], 10 * (prefix + 1));
  }
  for (const Unit& known : byte_units) {
    if (!small.empty() && small == lowered(known.name)) {
      return fmt::format("has a unit that is not exact: write {}", known.name);
    }
  }
  return fmt::format("has the unknown unit {}: use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB",
                     quoted(unit));
}

/// Returns the unsigned number at the start of `text`, and the text after it.
std::pair<double, std::string_view> parse_number(std::string_view text, std::string_view example) {
  const std::string_view body = trimmed(text);
  if (body.empty()) refuse(text, fmt::format("is empty: write for example {}", example));
  if (body.front() == '-') refuse(text, fmt::format("is negative: write for example {}", example));
  double value = 0;
  const char* const end = body.data() + body.size();
  const auto [stop, error] = std::from_chars(body.data(), end, value);
  if (error == std::errc::result_out_of_range) refuse(text, "is out of range");
  // from_chars also reads "inf" and "nan", which are not valid amounts.
  if (error != std::errc{} || !(is_digit(body.front()) || body.front() == '.')) {
    refuse(text, fmt::format("does not start with a number: write for example {}", example));
  }
  return {value, trimmed({stop, static_cast<std::size_t>(end - stop)})};
}

/// Reads a number that is followed by one of `units`; returns it in seconds or in FLOP/s.
double parse_with_unit(std::string_view text, std::span<const Unit> units, std::string_view example,
                       std::string_view names) {
  const auto [value, rest] = parse_number(text, example);
  const auto unit = std::ranges::find(units, rest, &Unit::name);
  if (unit == units.end()) {
    refuse(text, fmt::format("has the unknown unit {}: use {}", quoted(rest), names));
  }
  if (!std::isfinite(value * unit->size)) refuse(text, "is out of range");
  return value * unit->size;
}

int decimals_for(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return std::clamp(digits - 1 - exponent, 0, 12);
}

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, decimals_for(value, digits));
  return std::round(value * scale) / scale;
}

/// Returns `value` with `digits` significant digits, but with all digits before the decimal point
/// and at most 12 after it. It is never in exponent form; trailing zeros are kept.
std::string fixed(double value, int digits) {
  return fmt::format("{:.{}f}", value, decimals_for(rounded(value, digits), digits));
}

std::string without_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

constexpr std::array<std::string_view, 7> decimal_prefixes{"", "k", "M", "G", "T", "P", "E"};

struct Scaled {
  std::string number;
  std::string_view prefix;
};

/// Returns `value` with at most three significant digits and a decimal prefix (a power of 10^3). A
/// number that is not finite has no prefix.
Scaled scale_by_1000(double value) {
  if (!std::isfinite(value)) return {.number = fmt::format("{}", value), .prefix = ""};
  std::size_t prefix = 0;
  while (prefix + 1 < decimal_prefixes.size() && std::abs(rounded(value, 3)) >= 1000) {
    value /= 1000;
    ++prefix;
  }
  return {.number = without_zeros(fixed(value, 3)), .prefix = decimal_prefixes[prefix]};
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  const auto exact = base::number_in<std::uint64_t>(trimmed(text));
  if (exact && *exact <= most) return Bytes{*exact};
  const auto [value, rest] = parse_number(text, "64MiB");
  const auto* const unit = std::ranges::find(byte_units, rest, &Unit::name);
  if (unit == byte_units.end()) refuse(text, explain_unit(rest));
  const double bytes = value * unit->size;
  if (!(bytes < 0x1p63)) refuse(text, "is too large: sizes end below 2^63 bytes");
  const double whole = std::round(bytes);
  constexpr double rounding = 1e-9;  // relative; 0.3kB is not exactly 300 in binary
  if (std::abs(bytes - whole) > rounding * bytes) refuse(text, "is not a whole number of bytes");
  return Bytes{static_cast<std::uint64_t>(whole)};
}

Seconds parse_seconds(std::string_view text) {
  return Seconds{
      parse_with_unit(text, time_units, "30s, 250ms, 25m or 2h", "ns, us, ms, s, m or h")};
}

double parse_ratio(std::string_view text) {
  const auto [value, rest] = parse_number(text, "1% or 0.01");
  if (rest == "%") return value / 100;
  if (!rest.empty()) {
    refuse(text, fmt::format("has the unknown unit {}: use % or nothing", quoted(rest)));
  }
  if (value > 1) {
    refuse(text, fmt::format("is ambiguous: write {}% or {}", value, value / 100));
  }
  return value;
}

FlopsPerSecond parse_flops_per_second(std::string_view text) {
  return FlopsPerSecond{parse_with_unit(text, flop_units, "20GFLOP/s or 1.5 TFLOP/s",
                                        "MFLOP/s, GFLOP/s, TFLOP/s or PFLOP/s")};
}

std::string format(Bytes bytes) {
  constexpr std::array<std::string_view, 7> names{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes.value() < 1024) return fmt::format("{} B", bytes.value());
  auto value = static_cast<double>(bytes.value());
  std::size_t unit = 0;
  while (unit + 1 < names.size() && rounded(value, 3) >= 1024) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", fixed(value, 3), names[unit]);
}

std::string format(Seconds time) {
  constexpr int digits = 4;
  const double seconds = time.value();
  if (!std::isfinite(seconds)) return fmt::format("{} s", seconds);
  // The next larger unit is used when the rounded number reaches the limit; below 1 ns there is no
  // smaller unit.
  struct Step {
    double seconds;
    double limit;
    std::string_view name;
  };
  constexpr std::array steps{Step{1e-9, 1000, "ns"}, Step{1e-6, 1000, "us"}, Step{1e-3, 1000, "ms"},
                             Step{1.0, 120, "s"}, Step{60.0, 120, "min"}};
  if (seconds == 0) return "0 s";
  for (const Step& step : steps) {
    const double value = seconds / step.seconds;
    if (std::abs(rounded(value, digits)) < step.limit) {
      return fmt::format("{} {}", without_zeros(fixed(value, digits)), step.name);
    }
  }
  return fmt::format("{} h", without_zeros(fixed(seconds / 3600, digits)));
}

std::string format(Flops work) { return format_prefixed(work.value(), "FLOP"); }
std::string format(BytesPerSecond speed) { return format_prefixed(speed.value(), "B/s"); }
std::string format(FlopsPerSecond speed) { return format_prefixed(speed.value(), "FLOP/s"); }

std::string format_count(double value, std::string_view unit) {
  const Scaled scaled = scale_by_1000(value);
  if (scaled.prefix.empty()) return fmt::format("{} {}", scaled.number, unit);
  return fmt::format("{} {} {}", scaled.number, scaled.prefix, unit);
}

std::string format_prefixed(double value, std::string_view unit) {
  const Scaled scaled = scale_by_1000(value);
  return fmt::format("{} {}{}", scaled.number, scaled.prefix, unit);
}

std::string format_percent(double ratio, int decimals) {
  const std::string text = fmt::format("{:.{}f}", ratio * 100, decimals);
  // A small negative number rounds to "-0.0"; its sign would mislead and is dropped.
  const bool zero = text.find_first_of("123456789in") == std::string::npos;
  return (zero && text.front() == '-' ? text.substr(1) : text) + "%";
}

}  // namespace isoscale::units
