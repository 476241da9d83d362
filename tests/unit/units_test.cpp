// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "units/quantity.hpp"
#include "units/text.hpp"
#include "words.hpp"

namespace isoscale::units {
namespace {

std::vector<std::uint64_t> bytes_of(const std::vector<std::string>& texts) {
  return mapped(texts, [](const std::string& text) { return parse_bytes(text).value(); });
}
template <class Given = double>
auto each(const auto& call, const std::vector<Given>& values) {
  return mapped(values, call);
}
std::vector<double> seconds_of(const std::vector<std::string>& texts) {
  return mapped(texts, [](const std::string& text) { return parse_seconds(text).value(); });
}

std::string refusal(const auto& parse, std::string_view text) {
  return testing_support::usage_error<std::invalid_argument>([&] { (void)parse(text); });
}

void expect_refusals(const auto& parse,
                     const std::vector<testing_support::Refused<std::string>>& cases) {
  testing_support::expect_words_of(cases, [&](const auto& text) { return refusal(parse, text); });
}

// A quantity keeps its unit and mixes with no other.
static_assert(Bytes{3} + Bytes{4} * 2 - Bytes{1} == 2 * Bytes{5});
static_assert(Bytes{10} / std::uint64_t{4} == Bytes{2});
static_assert(!std::is_convertible_v<std::uint64_t, Bytes>);
static_assert(!std::is_convertible_v<Bytes, std::uint64_t>);
static_assert(!std::is_constructible_v<Bytes, Seconds>);
static_assert(!std::is_constructible_v<Seconds, Nanoseconds>);

TEST(Quantity, ConvertsRates) {
  EXPECT_DOUBLE_EQ(Bytes{1} / Bytes{4}, 0.25);
  EXPECT_DOUBLE_EQ(rate(Bytes{3000}, Seconds{1.5}).value(), 2000.0);
  EXPECT_DOUBLE_EQ(rate(Flops{6e12}, Seconds{2.0}).value(), 3e12);
}

TEST(Quantity, ConvertsTimesWhichSaturateBeyondNanoseconds) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto nanoseconds = [](double seconds) { return to_nanoseconds(Seconds{seconds}).value(); };
  EXPECT_DOUBLE_EQ(to_seconds(Nanoseconds{2'500'000'000}).value(), 2.5);
  EXPECT_THAT(each(nanoseconds, {1.5e-6, 0.6e-9, -0.6e-9, 9e9, std::nan("")}),
              ElementsAre(1500, 1, -1, 9'000'000'000'000'000'000, 0));
  EXPECT_THAT(each(nanoseconds, {1e30, infinite, 0x1p63 * 1e-9, -1e30, -infinite}),
              ElementsAre(most, most, most, least, least));
}

TEST(ParseBytes, ReadsEveryUnitAndFractionsExactly) {
  EXPECT_THAT(bytes_of({"0", "4096", "007", "17B", "3kB", "25 MB", "2GB", "1TB"}),
              ElementsAre(0, 4096, 7, 17, 3'000, 25'000'000, 2'000'000'000, 1'000'000'000'000));
  EXPECT_THAT(bytes_of({"1KiB", "  \t 7  KiB ", "64MiB", "80GiB", "1TiB"}),
              ElementsAre(1'024, 7'168, 67'108'864, 85'899'345'920, 1'099'511'627'776));
  EXPECT_THAT(bytes_of({"1.5KiB", "0.3kB", "2.50 MB", "4.000"}),
              ElementsAre(1'536, 300, 2'500'000, 4));
  EXPECT_THAT(bytes_of({"5e8", "2.56E2KiB", "1.5e0 kB", "0.0015e3kB"}),
              ElementsAre(500'000'000, 262'144, 1'500, 1'500));
  // The first is not a binary fraction; the others are the largest below 2^63.
  EXPECT_THAT(
      bytes_of({"9007199.254740993GB", "9223372036854775807", "8388607TiB"}),
      ElementsAre(9'007'199'254'740'993, 9'223'372'036'854'775'807U, 9'223'370'937'343'148'032U));
}

TEST(ParseBytes, RefusalsSayWhatToWrite) {
  for (const auto* text :
       {"1.5", "0.5B", "0.0001kB", "1.3KiB", "1.0000000000000000001TB", "1.25e1"}) {
    EXPECT_THAT(refusal(parse_bytes, text), HasSubstr("whole number of bytes")) << text;
  }
  for (const auto* text : {"MiB", "abc", ".5KiB", "+5", "nan", "inf", ",5", "\xc3\xa9"}) {
    EXPECT_THAT(refusal(parse_bytes, text), HasSubstr("start with a number")) << text;
  }
  for (const auto* text : {"0x10", "1,5KiB", "1 2", "5MiB5", "1..5", "1.5.5", "5%"}) {
    EXPECT_THAT(refusal(parse_bytes, text), Not(HasSubstr("too large"))) << text;
  }
  for (const auto* text : {"9223372036854775808", "8388608TiB", "18446744073709551615",
                           "18446744073709551616", "99999999999999999999999999999999GiB",
                           "9223372036854775807KiB", "9223372.036854775808TB", "1e19", "99e18"}) {
    EXPECT_THAT(refusal(parse_bytes, text), AllOf(HasSubstr("too large"), HasSubstr("2^63")))
        << text;
  }
  expect_refusals(parse_bytes, {{"64M", {"'64M'", "ambiguous", "MB (10^6)", "MiB (2^20)"}},
                                {"64K", {"kB (10^3)", "KiB (2^10)"}},
                                {"64g", {"GB (10^9)", "GiB (2^30)"}},
                                {"1t", {"TB (10^12)", "TiB (2^40)"}},
                                {"4KB", {"kB", "KiB"}},
                                {"64mib", {"write MiB"}},
                                {"64mb", {"write MB"}},
                                {"64b", {"write B"}},
                                {"64 apples", {"unknown unit 'apples'", "MiB"}},
                                {"64PiB", {"unknown unit 'PiB'"}},
                                {"5e", {"unit"}},
                                {"5e-1", {"unit"}},
                                {"5.", {"point"}},
                                {"", {"empty"}},
                                {" \t ", {"empty"}},
                                {"-1", {"negative"}},
                                {"-0", {"negative"}}});
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
  EXPECT_THAT(seconds_of({"30s", "25m", "25 min", "2h", "1.5h", "90", " 0 "}),
              ElementsAre(30.0, 1500.0, 1500.0, 7200.0, 5400.0, 90.0, 0.0));
  EXPECT_THAT(seconds_of({"250ms", "10us", "10\u00b5s", "7ns"}),
              Pointwise(DoubleEq(), {0.25, 10e-6, 10e-6, 7e-9}));
}

TEST(ParseSeconds, RefusesTheRest) {
  for (const auto* text : {"s", "inf", "nan", "infinity", "+5s", "soon"}) {
    EXPECT_THAT(refusal(parse_seconds, text), HasSubstr("start with a number")) << text;
  }
  expect_refusals(parse_seconds, {{"", {"empty"}},
                                  {"-1s", {"negative"}},
                                  {"-nan", {"negative"}},
                                  {"5d", {"unknown unit 'd'", "ms"}},
                                  {"5M", {"unknown unit 'M'"}},
                                  {"1m30s", {"unknown unit 'm30s'"}},
                                  {"1e999", {"out of range"}},
                                  {"1e308h", {"out of range"}}});
}

TEST(ParseRatio, ReadsPercentAndPlainNumbersAndRefusesTheRest) {
  EXPECT_THAT(each<std::string>(parse_ratio, {"1%", "0.01", "2.5 %", "1", "150%", ".5"}),
              Pointwise(DoubleEq(), {0.01, 0.01, 0.025, 1.0, 1.5, 0.5}));
  expect_refusals(parse_ratio, {{"5", {"ambiguous", "5%", "0.05"}},
                                {"-1%", {"negative"}},
                                {"1 percent", {"unknown unit 'percent'"}},
                                {"1%%", {"unknown unit"}},
                                {"nan%", {"start with a number"}},
                                {"", {"empty"}}});
}

TEST(Format, OfBytesUsesBinaryUnitsWithThreeDigitsThatAreReadBack) {
  const auto text = [](std::uint64_t bytes) { return format(Bytes{bytes}); };
  EXPECT_THAT(each<std::uint64_t>(text, {0, 1023, 1024, 1'572'864, 67'108'864, 1'048'576'000}),
              ElementsAre("0 B", "1023 B", "1.00 KiB", "1.50 MiB", "64.0 MiB", "1000 MiB"));
  // Not "1024 KiB", and not "10.00 KiB".
  EXPECT_THAT(each<std::uint64_t>(text, {1'048'575, 10'239, std::uint64_t{1} << 63U}),
              ElementsAre("1.00 MiB", "10.0 KiB", "8.00 EiB"));
  for (const std::uint64_t bytes : {0ULL, 1ULL, 1000ULL, 1536ULL, 26'214'400ULL, 1ULL << 40U}) {
    EXPECT_EQ(parse_bytes(text(bytes)), Bytes{bytes});
  }
}

TEST(Format, OfSecondsPicksTheUnitAndAtMostFourDigits) {
  const auto text = [](double seconds) { return format(Seconds{seconds}); };
  EXPECT_THAT(each(text, {0, 12.3e-3, 12.3456e-3, 1.0, 0.99996, 10e-6, 59e-9}),
              ElementsAre("0 s", "12.3 ms", "12.35 ms", "1 s", "1 s", "10 us", "59 ns"));
  EXPECT_THAT(each(text, {0.25e-9, 90.5, 1500, 7200, -0.5, HUGE_VAL}),
              ElementsAre("0.25 ns", "90.5 s", "25 min", "2 h", "-500 ms", "inf s"));
  EXPECT_EQ(text(std::numeric_limits<double>::max()).substr(0, 4), "4993");
}

TEST(Format, OfRatesUsesPrefixesOfTen) {
  const auto flops = [](double work) { return format(Flops{work}); };
  const auto bandwidth = [](double speed) { return format(BytesPerSecond{speed}); };
  const auto speed = [](double flops) { return format(FlopsPerSecond{flops}); };
  EXPECT_THAT(each(flops, {3.2e9, 0}), ElementsAre("3.2 GFLOP", "0 FLOP"));
  EXPECT_THAT(each(bandwidth, {12.34e9, 999.9e6, 5300}),
              ElementsAre("12.3 GB/s", "1 GB/s", "5.3 kB/s"));
  EXPECT_THAT(each(speed, {165e9, 1.979e15, std::nan("")}),
              ElementsAre("165 GFLOP/s", "1.98 PFLOP/s", "nan FLOP/s"));
}

TEST(Format, OfCountsPutsThePrefixBesideTheNumber) {
  const auto text = [](double count) { return format_count(count, "steps/s"); };
  EXPECT_THAT(each(text, {12345, 123, 0.5, 0}),
              ElementsAre("12.3 k steps/s", "123 steps/s", "0.5 steps/s", "0 steps/s"));
  EXPECT_THAT(each(text, {999.6, -2.5e6, 1.5e22}),
              ElementsAre("1 k steps/s", "-2.5 M steps/s", "15000 E steps/s"));
}

TEST(Format, OfPercentRoundsAndNeverShowsMinusZero) {
  const auto text = [](double ratio) { return format_percent(ratio); };
  EXPECT_THAT(each(text, {0.123, 1.0, -0.0001, -0.05}),
              ElementsAre("12.3%", "100.0%", "0.0%", "-5.0%"));
  EXPECT_EQ(format_percent(0.98765, 2), "98.77%");
  EXPECT_EQ(format_percent(0.98765, 0), "99%");
}

}  // namespace
}  // namespace isoscale::units
