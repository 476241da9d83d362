// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "refusal.hpp"
#include "units/quantity.hpp"
#include "units/text.hpp"

namespace isoscale::units {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string refusal(const auto& parse, std::string_view text) {
  return testing_support::usage_error<std::invalid_argument>([&] { (void)parse(text); });
}

TEST(Quantity, KeepsItsUnitAndMixesWithNoOther) {
  constexpr Bytes sum = Bytes{3} + Bytes{4} * 2 - Bytes{1};
  static_assert(sum == Bytes{10});
  static_assert(2 * Bytes{5} == Bytes{10});
  static_assert(Bytes{10} / std::uint64_t{4} == Bytes{2});
  static_assert(std::is_same_v<decltype(Bytes{1} / Bytes{4}), double>);
  EXPECT_DOUBLE_EQ(Bytes{1} / Bytes{4}, 0.25);
  EXPECT_LT(Seconds{1.0}, Seconds{1.5});
  static_assert(!std::is_convertible_v<std::uint64_t, Bytes>);
  static_assert(!std::is_convertible_v<Bytes, std::uint64_t>);
  static_assert(!std::is_constructible_v<Bytes, Seconds>);
  static_assert(!std::is_constructible_v<Seconds, Nanoseconds>);
}

TEST(Quantity, ConvertsTimesAndRates) {
  EXPECT_DOUBLE_EQ(to_seconds(Nanoseconds{2'500'000'000}).value(), 2.5);
  EXPECT_EQ(to_nanoseconds(Seconds{1.5e-6}), Nanoseconds{1500});
  EXPECT_EQ(to_nanoseconds(Seconds{0.6e-9}), Nanoseconds{1});
  EXPECT_EQ(to_nanoseconds(Seconds{-0.6e-9}), Nanoseconds{-1});
  EXPECT_DOUBLE_EQ(rate(Bytes{3000}, Seconds{1.5}).value(), 2000.0);
  EXPECT_DOUBLE_EQ(rate(Flops{6e12}, Seconds{2.0}).value(), 3e12);
}

TEST(Quantity, TimesBeyondNanosecondsSaturate) {
  using Limits = std::numeric_limits<std::int64_t>;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(to_nanoseconds(Seconds{1e30}), Nanoseconds{Limits::max()});
  EXPECT_EQ(to_nanoseconds(Seconds{-1e30}), Nanoseconds{Limits::min()});
  EXPECT_EQ(to_nanoseconds(Seconds{infinite}), Nanoseconds{Limits::max()});
  EXPECT_EQ(to_nanoseconds(Seconds{-infinite}), Nanoseconds{Limits::min()});
  EXPECT_EQ(to_nanoseconds(Seconds{0x1p63 * 1e-9}), Nanoseconds{Limits::max()});
  EXPECT_EQ(to_nanoseconds(Seconds{9e9}), Nanoseconds{9'000'000'000'000'000'000});
  EXPECT_EQ(to_nanoseconds(Seconds{std::nan("")}), Nanoseconds{0});
}

TEST(ParseBytes, ReadsEveryUnit) {
  EXPECT_EQ(parse_bytes("0"), Bytes{0});
  EXPECT_EQ(parse_bytes("4096"), Bytes{4096});
  EXPECT_EQ(parse_bytes("17B"), Bytes{17});
  EXPECT_EQ(parse_bytes("3kB"), Bytes{3'000});
  EXPECT_EQ(parse_bytes("25 MB"), Bytes{25'000'000});
  EXPECT_EQ(parse_bytes("2GB"), Bytes{2'000'000'000});
  EXPECT_EQ(parse_bytes("1TB"), Bytes{1'000'000'000'000});
  EXPECT_EQ(parse_bytes("1KiB"), Bytes{1'024});
  EXPECT_EQ(parse_bytes("64MiB"), Bytes{67'108'864});
  EXPECT_EQ(parse_bytes("80GiB"), Bytes{85'899'345'920});
  EXPECT_EQ(parse_bytes("1TiB"), Bytes{1'099'511'627'776});
  EXPECT_EQ(parse_bytes("  \t 7  KiB "), Bytes{7'168});
  EXPECT_EQ(parse_bytes("007"), Bytes{7});
}

TEST(ParseBytes, ReadsFractionsExactly) {
  EXPECT_EQ(parse_bytes("1.5KiB"), Bytes{1'536});
  EXPECT_EQ(parse_bytes("0.3kB"), Bytes{300});
  EXPECT_EQ(parse_bytes("2.50 MB"), Bytes{2'500'000});
  EXPECT_EQ(parse_bytes("4.000"), Bytes{4});
  EXPECT_EQ(parse_bytes("5e8"), Bytes{500'000'000});
  EXPECT_EQ(parse_bytes("2.56E2KiB"), Bytes{262'144});
  EXPECT_EQ(parse_bytes("1.5e0 kB"), Bytes{1'500});
  EXPECT_EQ(parse_bytes("0.0015e3kB"), Bytes{1'500});
  EXPECT_THAT(refusal(parse_bytes, "1.25e1"), HasSubstr("not a whole number of bytes"));
  EXPECT_THAT(refusal(parse_bytes, "1e19"), HasSubstr("2^63"));
  EXPECT_THAT(refusal(parse_bytes, "99e18"), HasSubstr("2^63"));
  EXPECT_THAT(refusal(parse_bytes, "5e"), HasSubstr("unit"));
  EXPECT_THAT(refusal(parse_bytes, "5e-1"), HasSubstr("unit"));
  // Not a binary fraction: a double would not give this.
  EXPECT_EQ(parse_bytes("9007199.254740993GB"), Bytes{9'007'199'254'740'993});
}

TEST(ParseBytes, RefusalsSayWhatToWrite) {
  for (const auto* text : {"1.5", "0.5B", "0.0001kB", "1.3KiB", "1.0000000000000000001TB"}) {
    EXPECT_THAT(refusal(parse_bytes, text), HasSubstr("not a whole number of bytes")) << text;
  }
  EXPECT_THAT(refusal(parse_bytes, "64M"), AllOf(HasSubstr("'64M'"), HasSubstr("ambiguous"),
                                                 HasSubstr("MB (10^6)"), HasSubstr("MiB (2^20)")));
  EXPECT_THAT(refusal(parse_bytes, "64K"), AllOf(HasSubstr("kB (10^3)"), HasSubstr("KiB (2^10)")));
  EXPECT_THAT(refusal(parse_bytes, "64g"), AllOf(HasSubstr("GB (10^9)"), HasSubstr("GiB (2^30)")));
  EXPECT_THAT(refusal(parse_bytes, "1t"), AllOf(HasSubstr("TB (10^12)"), HasSubstr("TiB (2^40)")));
  EXPECT_THAT(refusal(parse_bytes, "4KB"), AllOf(HasSubstr("kB"), HasSubstr("KiB")));
  EXPECT_THAT(refusal(parse_bytes, "64mib"), HasSubstr("write MiB"));
  EXPECT_THAT(refusal(parse_bytes, "64mb"), HasSubstr("write MB"));
  EXPECT_THAT(refusal(parse_bytes, "64b"), HasSubstr("write B"));
  EXPECT_THAT(refusal(parse_bytes, "64 apples"),
              AllOf(HasSubstr("unknown unit 'apples'"), HasSubstr("MiB")));
  EXPECT_THAT(refusal(parse_bytes, "64PiB"), HasSubstr("unknown unit 'PiB'"));
  for (const auto* text : {"MiB", "abc", ".5KiB", "+5", "nan", "inf", ",5", "\xc3\xa9"}) {
    EXPECT_THAT(refusal(parse_bytes, text), HasSubstr("does not start with a number")) << text;
  }
  for (const auto* text : {"0x10", "1,5KiB", "1 2", "5MiB5", "1..5", "1.5.5", "5%"}) {
    EXPECT_THAT(refusal(parse_bytes, text), Not(HasSubstr("too large"))) << text;
  }
  EXPECT_THAT(refusal(parse_bytes, "5."), HasSubstr("point"));
  EXPECT_THAT(refusal(parse_bytes, ""), HasSubstr("empty"));
  EXPECT_THAT(refusal(parse_bytes, " \t "), HasSubstr("empty"));
  EXPECT_THAT(refusal(parse_bytes, "-1"), HasSubstr("negative"));
  EXPECT_THAT(refusal(parse_bytes, "-0"), HasSubstr("negative"));
}

TEST(ParseBytes, EndsBelowTwoToThe63) {
  EXPECT_EQ(parse_bytes("9223372036854775807"), Bytes{9'223'372'036'854'775'807U});
  EXPECT_EQ(parse_bytes("8388607TiB"), Bytes{9'223'370'937'343'148'032U});
  for (const auto* text : {"9223372036854775808", "8388608TiB", "18446744073709551615",
                           "18446744073709551616", "99999999999999999999999999999999GiB",
                           "9223372036854775807KiB", "9223372.036854775808TB"}) {
    EXPECT_THAT(refusal(parse_bytes, text), AllOf(HasSubstr("too large"), HasSubstr("2^63")))
        << text;
  }
}

TEST(ParseBytes, KeepsHostileTextOutOfTheTerminal) {
  const std::string escape = refusal(parse_bytes, "5\x1b[31mred\n");
  EXPECT_THAT(escape, AllOf(HasSubstr("\\x1b"), HasSubstr("\\x0a"), Not(HasSubstr("\x1b"))));
  const std::string endless(100'000, '9');
  EXPECT_LT(refusal(parse_bytes, endless).size(), 200U);
  EXPECT_LT(refusal(parse_bytes, fmt::format("1{}", std::string(100'000, 'x'))).size(), 250U);
  EXPECT_EQ(parse_bytes(fmt::format("{}5", std::string(100'000, '0'))), Bytes{5});
  using namespace std::string_view_literals;
  EXPECT_THAT(refusal(parse_bytes, "5\0MiB"sv), HasSubstr("\\x00"));
}

TEST(ParseSeconds, ReadsEveryUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("30s").value(), 30.0);
  EXPECT_DOUBLE_EQ(parse_seconds("250ms").value(), 0.25);
  EXPECT_DOUBLE_EQ(parse_seconds("25m").value(), 1500.0);
  EXPECT_DOUBLE_EQ(parse_seconds("25 min").value(), 1500.0);
  EXPECT_DOUBLE_EQ(parse_seconds("2h").value(), 7200.0);
  EXPECT_DOUBLE_EQ(parse_seconds("10us").value(), 10e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("10\u00b5s").value(), 10e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("7ns").value(), 7e-9);
  EXPECT_DOUBLE_EQ(parse_seconds("90").value(), 90.0);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5h").value(), 5400.0);
  EXPECT_DOUBLE_EQ(parse_seconds(" 0 ").value(), 0.0);
}

TEST(ParseSeconds, RefusesTheRest) {
  EXPECT_THAT(refusal(parse_seconds, ""), HasSubstr("empty"));
  EXPECT_THAT(refusal(parse_seconds, "-1s"), HasSubstr("negative"));
  EXPECT_THAT(refusal(parse_seconds, "-nan"), HasSubstr("negative"));
  for (const auto* text : {"s", "inf", "nan", "infinity", "+5s", "soon"}) {
    EXPECT_THAT(refusal(parse_seconds, text), HasSubstr("does not start with a number")) << text;
  }
  EXPECT_THAT(refusal(parse_seconds, "5d"), AllOf(HasSubstr("unknown unit 'd'"), HasSubstr("ms")));
  EXPECT_THAT(refusal(parse_seconds, "5M"), HasSubstr("unknown unit 'M'"));
  EXPECT_THAT(refusal(parse_seconds, "1m30s"), HasSubstr("unknown unit 'm30s'"));
  EXPECT_THAT(refusal(parse_seconds, "1e999"), HasSubstr("out of range"));
  EXPECT_THAT(refusal(parse_seconds, "1e308h"), HasSubstr("out of range"));
}

TEST(ParseRatio, ReadsPercentAndPlainNumbers) {
  EXPECT_DOUBLE_EQ(parse_ratio("1%"), 0.01);
  EXPECT_DOUBLE_EQ(parse_ratio("0.01"), 0.01);
  EXPECT_DOUBLE_EQ(parse_ratio("2.5 %"), 0.025);
  EXPECT_DOUBLE_EQ(parse_ratio("1"), 1.0);
  EXPECT_DOUBLE_EQ(parse_ratio("150%"), 1.5);
  EXPECT_DOUBLE_EQ(parse_ratio(".5"), 0.5);
}

TEST(ParseRatio, RefusesTheRest) {
  EXPECT_THAT(refusal(parse_ratio, "5"),
              AllOf(HasSubstr("ambiguous"), HasSubstr("5%"), HasSubstr("0.05")));
  EXPECT_THAT(refusal(parse_ratio, "-1%"), HasSubstr("negative"));
  EXPECT_THAT(refusal(parse_ratio, "1 percent"), HasSubstr("unknown unit 'percent'"));
  EXPECT_THAT(refusal(parse_ratio, "1%%"), HasSubstr("unknown unit"));
  EXPECT_THAT(refusal(parse_ratio, "nan%"), HasSubstr("does not start with a number"));
  EXPECT_THAT(refusal(parse_ratio, ""), HasSubstr("empty"));
}

TEST(FormatBytes, UsesBinaryUnitsWithThreeDigitsThatAreReadBack) {
  EXPECT_EQ(format(Bytes{0}), "0 B");
  EXPECT_EQ(format(Bytes{1023}), "1023 B");
  EXPECT_EQ(format(Bytes{1024}), "1.00 KiB");
  EXPECT_EQ(format(Bytes{1'572'864}), "1.50 MiB");
  EXPECT_EQ(format(Bytes{67'108'864}), "64.0 MiB");
  EXPECT_EQ(format(Bytes{1'048'576'000}), "1000 MiB");
  EXPECT_EQ(format(Bytes{1'048'575}), "1.00 MiB");  // not "1024 KiB"
  EXPECT_EQ(format(Bytes{10'239}), "10.0 KiB");     // not "10.00 KiB"
  EXPECT_EQ(format(Bytes{std::uint64_t{1} << 63U}), "8.00 EiB");
  for (const std::uint64_t bytes : {0ULL, 1ULL, 1000ULL, 1536ULL, 26'214'400ULL, 1ULL << 40U}) {
    EXPECT_EQ(parse_bytes(format(Bytes{bytes})), Bytes{bytes});
  }
}

TEST(FormatSeconds, PicksTheUnitAndAtMostFourDigits) {
  EXPECT_EQ(format(Seconds{0}), "0 s");
  EXPECT_EQ(format(Seconds{12.3e-3}), "12.3 ms");
  EXPECT_EQ(format(Seconds{12.3456e-3}), "12.35 ms");
  EXPECT_EQ(format(Seconds{1.0}), "1 s");
  EXPECT_EQ(format(Seconds{0.99996}), "1 s");  // not "1000 ms"
  EXPECT_EQ(format(Seconds{10e-6}), "10 us");
  EXPECT_EQ(format(Seconds{59e-9}), "59 ns");
  EXPECT_EQ(format(Seconds{0.25e-9}), "0.25 ns");
  EXPECT_EQ(format(Seconds{90.5}), "90.5 s");
  EXPECT_EQ(format(Seconds{1500}), "25 min");
  EXPECT_EQ(format(Seconds{7200}), "2 h");
  EXPECT_EQ(format(Seconds{-0.5}), "-500 ms");
  EXPECT_EQ(format(Seconds{std::numeric_limits<double>::infinity()}), "inf s");
  EXPECT_EQ(format(Seconds{std::numeric_limits<double>::max()}).substr(0, 4), "4993");
}

TEST(FormatRates, UsePrefixesOfTen) {
  EXPECT_EQ(format(Flops{3.2e9}), "3.2 GFLOP");
  EXPECT_EQ(format(Flops{0}), "0 FLOP");
  EXPECT_EQ(format(BytesPerSecond{12.34e9}), "12.3 GB/s");
  EXPECT_EQ(format(BytesPerSecond{999.9e6}), "1 GB/s");
  EXPECT_EQ(format(BytesPerSecond{5300}), "5.3 kB/s");
  EXPECT_EQ(format(FlopsPerSecond{165e9}), "165 GFLOP/s");
  EXPECT_EQ(format(FlopsPerSecond{1.979e15}), "1.98 PFLOP/s");
  EXPECT_EQ(format(FlopsPerSecond{std::nan("")}), "nan FLOP/s");
}

TEST(FormatCount, PutsThePrefixBesideTheNumber) {
  EXPECT_EQ(format_count(12345, "tokens/s"), "12.3 k tokens/s");
  EXPECT_EQ(format_count(123, "tokens/s"), "123 tokens/s");
  EXPECT_EQ(format_count(0.5, "steps/s"), "0.5 steps/s");
  EXPECT_EQ(format_count(0, "tokens/s"), "0 tokens/s");
  EXPECT_EQ(format_count(999.6, "steps/s"), "1 k steps/s");
  EXPECT_EQ(format_count(-2.5e6, "steps/s"), "-2.5 M steps/s");
  EXPECT_EQ(format_count(1.5e22, "x"), "15000 E x");
}

TEST(FormatPercent, RoundsAndNeverShowsMinusZero) {
  EXPECT_EQ(format_percent(0.123), "12.3%");
  EXPECT_EQ(format_percent(1.0), "100.0%");
  EXPECT_EQ(format_percent(0.98765, 2), "98.77%");
  EXPECT_EQ(format_percent(0.98765, 0), "99%");
  EXPECT_EQ(format_percent(-0.0001), "0.0%");
  EXPECT_EQ(format_percent(-0.05), "-5.0%");
}

}  // namespace
}  // namespace isoscale::units
