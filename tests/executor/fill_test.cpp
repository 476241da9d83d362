// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Fills of every type, and grids that keep sums exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>
#include <set>

#include "program/fill_and_checksum.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::DType;
using program::Fill;
using program::FillSource;
using program::Slice;

constexpr std::uint64_t count = 5'000;

class Fills : public EachExecutor {
 protected:
  /// A session that has filled `count` elements of a type, the first buffer.
  std::unique_ptr<Session> after(DType type, Fill fill) {
    Sketch sketch;
    fill.dst = sketch.buffer(type, count);
    fill.shard = {.extents = {1, 1, count}, .local = {0, 0, 1}, .global = {0, 0, 1}};
    sketch.emit(fill);
    return played(sketch);
  }
  std::vector<std::byte> filled(DType type, const Fill& fill) {
    std::vector<std::byte> raw(count * program::element_size(type));
    after(type, fill)->read({.buffer = 0, .count = count}, raw);
    return raw;
  }
  std::vector<double> filled_f64(const Fill& fill) {
    return get<double>(*after(DType::f64, fill), {.buffer = 0, .count = count});
  }
};

constexpr std::array all_types{DType::f64,  DType::f32, DType::f16, DType::bf16, DType::e4m3,
                               DType::e5m2, DType::i64, DType::i32, DType::i8,   DType::u8};

TEST_P(Fills, OfEveryTypeHaveTheSameValues) {
  // 2^3: beyond what i8 and u8 hold, which wrap.
  for (const Fill& fill :
       {Fill{.key = 3}, Fill{.key = 4, .exponent = 3}, Fill{.key = 5, .range = 7, .one_in = 3},
        Fill{.source = FillSource::constant, .value = 5},
        Fill{.source = FillSource::constant, .value = -3}}) {
    const std::vector<double> values = filled_f64(fill);
    if (fill.source == FillSource::constant) {
      EXPECT_THAT(values, testing::Each(fill.value));
    }
    for (const DType type : all_types) {
      EXPECT_TRUE(filled(type, fill) == stored(type, values))
          << program::name(type) << ", key " << fill.key;
    }
  }
}

TEST_P(Fills, DrawFromTheRangeAsOftenAsToldTo) {
  constexpr std::int32_t range = 2;
  constexpr std::uint32_t one_in = 8;
  const std::vector<double> values = filled_f64({.key = 11, .range = range, .one_in = one_in});
  const std::set<double> seen(values.begin(), values.end());
  EXPECT_THAT(seen, testing::ElementsAre(-2, -1, 0, 1, 2));
  const auto others =
      static_cast<double>(std::ranges::count_if(values, [](double value) { return value != 0; }));
  // One in 8 is drawn, of which one in 5 is 0: 500 of 5000, standard deviation 21.
  EXPECT_NEAR(others, 500, 110);
  EXPECT_EQ(values, filled_f64({.key = 11, .range = range, .one_in = one_in}));
}

TEST_P(Fills, OfANormalHaveEveryDigitOfTheTypeAndItsExponents) {
  constexpr int exponent = 3;
  const Fill fill{.source = FillSource::normal, .key = 17, .exponent = exponent};
  const std::vector<double> values = filled_f64(fill);
  const auto share = [&](auto&& has) {
    return static_cast<double>(std::ranges::count_if(values, has)) / static_cast<double>(count);
  };
  // Probabilities of a normal; the standard deviation of a share is at most 0.007.
  for (const double bound : {0.125, 0.25, 0.5, 1.0, 2.0}) {
    EXPECT_NEAR(share([&](double x) { return std::abs(x) >= std::ldexp(bound, exponent); }),
                std::erfc(bound / std::numbers::sqrt2), 0.03)
        << bound;
  }
  EXPECT_NEAR(share([](double x) { return x > 0; }), 0.5, 0.03);
  // Each digit of the significand is set in half of them, in f64 and after rounding to others.
  const auto digit = [](double x, int place) {
    int unused = 0;
    return (static_cast<std::uint64_t>(std::ldexp(std::abs(std::frexp(x, &unused)), place)) & 1U) !=
           0;
  };
  for (int place = 2; place <= 53; ++place) {
    EXPECT_NEAR(share([&](double x) { return digit(x, place); }), 0.5, 0.03) << place;
  }
  // The digits that f32 lacks are cut off before anything is rounded.
  std::vector<double> cut = values;
  for (double& value : cut) {
    value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) >> 29U << 29U);
  }
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    EXPECT_TRUE(filled(type, fill) == stored(type, cut)) << program::name(type);
  }
}

TEST_P(Fills, RefuseWhatTheTypeDoesNotHave) {
  struct Refused {
    DType type;
    Fill fill;
    const char* why;
  };
  for (const auto& [type, fill, why] :
       {Refused{DType::i32, {.source = FillSource::normal}, "a fill of i32"},
        Refused{DType::i32, {.exponent = -1}, "a fill of i32 with exponent -1"},
        Refused{DType::i64, {.exponent = 57}, "exponent 57"},
        Refused{DType::f64, {.exponent = 1017}, "exponent 1017"},
        Refused{DType::u8,
                {.source = FillSource::constant, .value = 0.5},
                "a fill of u8 with 0.5: no whole number"},
        Refused{DType::f32, {.range = 0}, "integers up to 0"},
        Refused{DType::f32, {.range = 128}, "integers up to 128"},
        Refused{DType::f32, {.one_in = 0}, "one of 0 elements"}}) {
    EXPECT_THAT(message_of([&] { return after(type, fill); }), testing::HasSubstr(why));
  }
}

TEST_P(Fills, DrawFromTheWholeGridAndDependOnTheKey) {
  EXPECT_NE(filled_f64({.key = 42, .exponent = -3}), filled_f64({.key = 43, .exponent = -3}));
  constexpr std::uint64_t many = 100'000;
  Sketch sketch;
  const Slice dst = sketch.buffer<double>(many);
  sketch.emit(Fill{.dst = dst,
                   .shard = {.extents = {1, 1, many}, .local = {0, 0, 1}, .global = {0, 0, 1}},
                   .key = 42,
                   .exponent = -3});
  std::vector<double> values = get<double>(*played(sketch), dst);
  std::set<double> seen;
  double sum = 0;
  for (double& value : values) {
    value *= 8;
    EXPECT_EQ(value, std::round(value));
    EXPECT_LE(std::abs(value), 127);
    seen.insert(value);
    sum += value;
  }
  EXPECT_EQ(seen.size(), 255U);
  // The standard deviation of one value is 73.6, that of the mean of 100,000 is 0.23.
  EXPECT_LT(std::abs(sum / many), 1.2);
}

TEST_P(Fills, OfAShardAreThePartOfTheWhole) {
  // A 4 x 6 tensor; its columns 2 to 4, transposed, in f32.
  Sketch sketch;
  const Slice whole = sketch.buffer<double>(24), part = sketch.buffer<float>(12);
  const Fill fill{.dst = whole,
                  .shard = {.extents = {1, 4, 6}, .local = {0, 6, 1}, .global = {0, 6, 1}},
                  .key = 7,
                  .exponent = 2};
  sketch.emit(fill);
  Fill some = fill;
  some.dst = part;
  some.shard = {.extents = {3, 4, 1}, .local = {4, 1, 0}, .global = {1, 6, 0}, .base = 2};
  sketch.emit(some);
  const auto session = played(sketch);
  const auto all = get<double>(*session, whole);
  std::vector<float> expected;
  for (std::size_t i = 0; i < 12; ++i) {
    expected.push_back(static_cast<float>(all[i % 4 * 6 + i / 4 + 2]));
  }
  EXPECT_EQ(get<float>(*session, part), expected);
}

TEST_P(Fills, WithAConstantWriteItAndNothingElse) {
  // The middle columns of a 3 x 4 matrix.
  Sketch sketch;
  const Slice whole = sketch.buffer<double>(12);
  sketch.emit(Fill{.dst = {.buffer = whole.buffer, .offset = 1, .count = 10},
                   .shard = {.extents = {1, 3, 2}, .local = {0, 4, 1}, .global = {0, 2, 1}},
                   .source = FillSource::constant,
                   .key = 7,
                   .value = 1.0 / 3});
  const auto session = played(sketch, with(whole, std::vector<double>(12, 9)));
  const double third = 1.0 / 3;
  EXPECT_THAT(get<double>(*session, whole),
              testing::ElementsAre(9, third, third, 9, 9, third, third, 9, 9, third, third, 9));
  EXPECT_TRUE(filled(DType::f32, {.source = FillSource::constant, .value = third}) ==
              stored(DType::f32, std::vector<double>(count, third)));
}

/// Values written down once: they must not change, or runs of two versions do not compare.
TEST(FillValues, AreFixed) {
  std::vector<int> values;
  for (std::uint64_t i = 0; i < 6; ++i) {
    values.push_back(program::fill_integer({.origin = program::fill_origin(1)}, i));
  }
  EXPECT_EQ(program::power_of_two(-3), 0.125);
  EXPECT_EQ(program::power_of_two(4), 16);
  EXPECT_THAT(values, testing::ElementsAre(93, -34, 113, -116, 71, -72));
}

INSTANTIATE_TEST_SUITE_P(Executors, Fills, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
