// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "units/text.hpp"

namespace isoscale::units {
namespace {

int decimals_for(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return std::clamp(digits - 1 - exponent, 0, 12);
}

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, decimals_for(value, digits));
  return std::round(value * scale) / scale;
}

/// `value` with `digits` significant digits, never in exponent form, zeros at the end kept.
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

/// `value` with three significant digits and a prefix of 10^3.
Scaled scale_by_1000(double value) {
  if (!std::isfinite(value)) return {.number = fmt::format("{}", value), .prefix = ""};
  std::size_t prefix = 0;
  while (prefix + 1 < decimal_prefixes.size() && std::abs(rounded(value, 3)) >= 1000) {
    value /= 1000;
    ++prefix;
  }
  return {.number = without_zeros(fixed(value, 3)), .prefix = decimal_prefixes[prefix]};
}

std::string with_prefixed_unit(double value, std::string_view unit) {
  const Scaled scaled = scale_by_1000(value);
  return fmt::format("{} {}{}", scaled.number, scaled.prefix, unit);
}

}  // namespace

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
  // Each unit is left when its rounded number reaches the limit; below 1 ns nothing is smaller.
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

std::string format(Flops work) { return with_prefixed_unit(work.value(), "FLOP"); }
std::string format(BytesPerSecond speed) { return with_prefixed_unit(speed.value(), "B/s"); }
std::string format(FlopsPerSecond speed) { return with_prefixed_unit(speed.value(), "FLOP/s"); }

std::string format_count(double value, std::string_view unit) {
  const Scaled scaled = scale_by_1000(value);
  if (scaled.prefix.empty()) return fmt::format("{} {}", scaled.number, unit);
  return fmt::format("{} {} {}", scaled.number, scaled.prefix, unit);
}

std::string format_prefixed(double value, std::string_view unit) {
  return with_prefixed_unit(value, unit);
}

std::string format_percent(double ratio, int decimals) {
  const std::string text = fmt::format("{:.{}f}", ratio * 100, decimals);
  // A small negative number rounds to "-0.0", which says a sign that is not there.
  const bool zero = text.find_first_of("123456789in") == std::string::npos;
  return (zero && text.front() == '-' ? text.substr(1) : text) + "%";
}

}  // namespace isoscale::units
