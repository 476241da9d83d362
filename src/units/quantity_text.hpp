// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "units/quantity.hpp"

/// Reads quantities from text and writes them for people, with prefixes of 10^3 (kB, GFLOP/s) or,
/// for bytes, also of 2^10 (KiB).
namespace isoscale::units {

/// Reads "64MiB", "25 MB" or "4096" (bytes). Accepts the units kB, MB, GB, TB (10^3), KiB, MiB,
/// GiB, TiB (2^10) and B, or no unit. Whole numbers without a unit are read exactly, others as
/// double. Throws std::invalid_argument, not base::Error, with a sentence for a person when the
/// text has no meaning, is ambiguous ("64M", "64K", "64g"), negative, 2^63 or more, or differs from
/// a whole number of bytes by more than 1e-9 of it.
[[nodiscard]] Bytes parse_bytes(std::string_view text);
/// Reads a time such as "30s", "1.5 h" or "250ms". The units are ns, us (also written with the
/// micro sign), ms, s, m or min, and h; a bare number is seconds. Throws std::invalid_argument for
/// any other text.
[[nodiscard]] Seconds parse_seconds(std::string_view text);
/// Reads "1%" or "0.01" as a ratio (1.0 = 100%). Throws std::invalid_argument for any other text
/// and for a number over 1 without %, since it could be meant as a ratio or as a percentage.
[[nodiscard]] double parse_ratio(std::string_view text);

/// Reads "20GFLOP/s" or "1.5 TFLOP/s". The prefix is k, M, G, T, P (powers of 10^3) or none; the
/// unit must be given. Throws std::invalid_argument for any other text, with a sentence for a
/// person.
[[nodiscard]] FlopsPerSecond parse_flops_per_second(std::string_view text);

[[nodiscard]] std::string format(Bytes bytes);   ///< "1.50 MiB"
[[nodiscard]] std::string format(Seconds time);  ///< "12.3 ms", four significant digits at most
[[nodiscard]] std::string format(Flops work);    ///< "3.2 GFLOP"
[[nodiscard]] std::string format(BytesPerSecond speed);  ///< "12.3 GB/s" (10^3)
[[nodiscard]] std::string format(FlopsPerSecond speed);  ///< "165 GFLOP/s"
/// Returns a plain count with a 10^3 prefix and a unit: format_count(12345, "tokens/s") = "12.3 k
/// tokens/s".
[[nodiscard]] std::string format_count(double value, std::string_view unit);
/// Returns a value with a prefixed unit: format_prefixed(1.98e9, "Hz") = "1.98 GHz". Values below
/// 1000 get no prefix.
[[nodiscard]] std::string format_prefixed(double value, std::string_view unit);
[[nodiscard]] std::string format_percent(double ratio, int decimals = 1);  ///< 0.123 -> "12.3%"

}  // namespace isoscale::units
