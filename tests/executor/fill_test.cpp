// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Fills of every type, and grids that keep sums exact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <set>

#include "base/error.hpp"
#include "program/low_precision.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::DType;
using program::Fill;
using program::FillSource;
using program::Slice;
using testing::HasSubstr;

constexpr std::uint64_t count = 5'000;

class Fills : public EachExecutor {
 protected:
  /// The raw bytes after `fill` of `count` elements of a type.
  std::vector<std::byte> filled(DType type, Fill fill) {
    Sketch sketch;
    fill.dst = sketch.buffer(type, count);
    fill.shard = {.extents = {1, 1, count}, .local = {0, 0, 1}, .global = {0, 0, 1}};
    sketch.emit(fill);
    const auto session = prepare(sketch);
    session->play(program::Section::step, Trace::off);
    std::vector<std::byte> raw(count * program::element_size(type));
    session->read(fill.dst, raw);
    return raw;
  }

  std::vector<double> filled_f64(const Fill& fill) {
    const auto raw = filled(DType::f64, fill);
    std::vector<double> values(count);
    std::memcpy(values.data(), raw.data(), raw.size());
    return values;
  }

  std::string refusal(DType type, const Fill& fill) {
    try {
      static_cast<void>(filled(type, fill));
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  }
};

/// The low bytes of a number, as a little-endian machine stores them.
std::vector<std::byte> low_bytes(std::uint64_t bits, std::size_t size) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(std::byte(bits >> (8 * i) & 0xFFU));
  return bytes;
}

/// `value` as an element of a type.
std::vector<std::byte> stored(DType type, double value) {
  const std::size_t size = program::element_size(type);
  if (const auto format = program::narrow_format(type))
    return low_bytes(encode(*format, value), size);
  if (type == DType::f64) return low_bytes(std::bit_cast<std::uint64_t>(value), size);
  if (type == DType::f32) {
    return low_bytes(std::bit_cast<std::uint32_t>(static_cast<float>(value)), size);
  }
  return low_bytes(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)), size);
}

constexpr std::array all_types{DType::f64,  DType::f32, DType::f16, DType::bf16, DType::e4m3,
                               DType::e5m2, DType::i64, DType::i32, DType::i8,   DType::u8};

TEST_P(Fills, OfEveryTypeHaveTheSameValues) {
  // 2^3: beyond what i8 and u8 hold, which wrap.
  for (const Fill& fill :
       {Fill{.key = 3}, Fill{.key = 4, .exponent = 3}, Fill{.key = 5, .range = 7, .one_in = 3}}) {
    const std::vector<double> values = filled_f64(fill);
    for (const DType type : all_types) {
      std::vector<std::byte> expected;
      for (const double value : values) {
        const auto bytes = stored(type, value);
        expected.insert(expected.end(), bytes.begin(), bytes.end());
      }
      EXPECT_TRUE(filled(type, fill) == expected) << program::name(type) << ", key " << fill.key;
    }
  }
}

TEST_P(Fills, WithAConstantOfEveryType) {
  for (const DType type : all_types) {
    for (const double value : {5.0, -3.0}) {
      std::vector<std::byte> expected;
      for (std::uint64_t i = 0; i < count; ++i) {
        const auto bytes = stored(type, value);
        expected.insert(expected.end(), bytes.begin(), bytes.end());
      }
      EXPECT_TRUE(filled(type, {.source = FillSource::constant, .value = value}) == expected)
          << program::name(type);
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
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    const std::vector<std::byte> raw = filled(type, fill);
    std::vector<std::byte> expected;
    for (const double value : values) {
      // The digits that f32 lacks are cut off before anything is rounded.
      const std::uint64_t kept = std::bit_cast<std::uint64_t>(value) >> 29U << 29U;
      const auto bytes = stored(type, std::bit_cast<double>(kept));
      expected.insert(expected.end(), bytes.begin(), bytes.end());
    }
    EXPECT_TRUE(raw == expected) << program::name(type);
  }
  EXPECT_THAT(refusal(DType::i32, {.source = FillSource::normal}), HasSubstr("a fill of i32"));
}

TEST_P(Fills, RefuseWhatTheTypeDoesNotHave) {
  EXPECT_THAT(refusal(DType::i32, {.exponent = -1}), HasSubstr("a fill of i32 with exponent -1"));
  EXPECT_THAT(refusal(DType::i64, {.exponent = 57}), HasSubstr("exponent 57"));
  EXPECT_THAT(refusal(DType::f64, {.exponent = 1017}), HasSubstr("exponent 1017"));
  EXPECT_THAT(refusal(DType::u8, {.source = FillSource::constant, .value = 0.5}),
              HasSubstr("a fill of u8 with 0.5: no whole number"));
  EXPECT_THAT(refusal(DType::f32, {.range = 0}), HasSubstr("integers up to 0"));
  EXPECT_THAT(refusal(DType::f32, {.range = 128}), HasSubstr("integers up to 128"));
  EXPECT_THAT(refusal(DType::f32, {.one_in = 0}), HasSubstr("one of 0 elements"));
}

INSTANTIATE_TEST_SUITE_P(Executors, Fills, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
