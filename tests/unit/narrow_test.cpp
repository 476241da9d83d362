// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Conversions round to the narrow types of elements as these are published, and casts scale to
// their range.

#include <bit>

#include "matchers.hpp"
#include "program/low_precision.hpp"
#include "tests/support/gpu_rounding.hpp"

namespace isoscale::program {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double value_of(const NarrowFormat& format, unsigned code) {
  return static_cast<double>(decode(format, static_cast<std::uint16_t>(code)));
}
double rounded(const NarrowFormat& format, double value) {
  return value_of(format, encode(format, value));
}

TEST(Narrow, EveryCodeRoundTrips) {
  for (const NarrowFormat& format : {f16_format, bf16_format, e4m3_format, e5m2_format}) {
    for (unsigned code = 0; code < 2U * format.sign(); ++code) {
      const double value = value_of(format, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(rounded(format, value)));
      } else if (std::isinf(value) && format.overflow == format.largest) {
        EXPECT_EQ(rounded(format, value), std::copysign(value_of(format, format.largest), value));
      } else {
        EXPECT_EQ(encode(format, value), code) << value;
      }
    }
  }
}

/// OCP 8-bit floating point specification, table 1; IEEE 754 binary16; bfloat16.
TEST(Narrow, HasThePublishedConstants) {
  const auto values = [](const NarrowFormat& format, const std::vector<unsigned>& codes) {
    return mapped(codes, [&](unsigned code) { return value_of(format, code); });
  };
  const auto two_to = [](int exponent) { return std::ldexp(1, exponent); };
  EXPECT_THAT(values(e4m3_format, {0x7E, 0x08, 0x01, 0xB8, 0x7F, 0xFF}),
              ElementsAre(448, two_to(-6), two_to(-9), -1, IsNan(), IsNan()));
  EXPECT_THAT(values(e5m2_format, {0x7B, 0x04, 0x01, 0x7C, 0x7D}),
              ElementsAre(57344, two_to(-14), two_to(-16), infinity, IsNan()));
  EXPECT_THAT(values(f16_format, {0x7BFF, 0x0001, 0xFC00}),
              ElementsAre(65504, two_to(-24), -infinity));
  EXPECT_THAT(values(bf16_format, {0x3F80, 0x0001}), ElementsAre(1, two_to(-133)));
}

TEST(Narrow, RoundsToTheNearestAndTiesToTheEvenCode) {
  for (const NarrowFormat& format : {f16_format, bf16_format, e4m3_format, e5m2_format}) {
    for (unsigned code = 0; code < format.largest; ++code) {
      const double low = value_of(format, code), high = value_of(format, code + 1);
      const double middle = (low + high) / 2;
      const unsigned even = code % 2 == 0 ? code : code + 1;
      ASSERT_EQ(encode(format, middle), even) << middle;
      ASSERT_EQ(encode(format, -middle), even | format.sign()) << middle;
      ASSERT_EQ(encode(format, std::nextafter(middle, low)), code) << middle;
      ASSERT_EQ(encode(format, std::nextafter(middle, high)), code + 1) << middle;
    }
  }
}

TEST(Narrow, OverflowsAsItsTypeDoes) {
  for (const double huge : {1e30, 1e308, infinity}) {
    EXPECT_EQ(rounded(e4m3_format, huge), 448);
    EXPECT_EQ(rounded(e4m3_format, -huge), -448);
    EXPECT_EQ(rounded(e5m2_format, huge), 57344);
    EXPECT_EQ(rounded(f16_format, huge), infinity);
  }
  EXPECT_EQ(rounded(e4m3_format, 464), 448) << "halfway to the value after the largest";
  EXPECT_EQ(rounded(e4m3_format, 470), 448);
  EXPECT_EQ(rounded(f16_format, std::nextafter(65520.0, 0)), 65504);
  EXPECT_EQ(rounded(f16_format, 65520), infinity);
  EXPECT_EQ(rounded(bf16_format, 3.4e38), infinity);
  EXPECT_EQ(rounded(bf16_format, 1e308), infinity);
  EXPECT_EQ(rounded(f16_format, 1e-320), 0);
  EXPECT_TRUE(std::signbit(rounded(f16_format, -1e-30)));
}

/// All exponents and signs of f32, infinities, NaNs and subnormals among them.
std::vector<float> floats_of_all_kinds() {
  std::mt19937 engine{7};
  std::vector<float> values(200'000);
  for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
  return values;
}

TEST(Narrow, AgreesWithTheCompilersHalf) {
  for (const float value : floats_of_all_kinds()) {
    // Most exponents of f32 lie outside of f16's: bring half of them near.
    const float near = std::isfinite(value) && value != 0
                           ? std::ldexp(value, -std::ilogb(value) % 32 - std::ilogb(value))
                           : value;
    for (const float x : {value, near}) {
      const auto half = static_cast<_Float16>(x);
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(rounded(f16_format, x)));
      } else {
        ASSERT_EQ(encode(f16_format, x), std::bit_cast<std::uint16_t>(half)) << x;
      }
    }
  }
}

TEST(Narrow, RoundsTf32ToElevenSignificantBits) {
  const float ulp = std::ldexp(1.0F, -10);
  EXPECT_EQ(round_to_tf32(1 + ulp), 1 + ulp);
  EXPECT_EQ(round_to_tf32(1 + ulp / 2), 1);
  EXPECT_EQ(round_to_tf32(1 + 1.5F * ulp), 1 + 2 * ulp);
  EXPECT_EQ(round_to_tf32(-1 - 0.51F * ulp), -1 - ulp);
  EXPECT_EQ(round_to_tf32(std::numeric_limits<float>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(round_to_tf32(std::bit_cast<float>(0x7F800001U))));
  for (const float value : floats_of_all_kinds()) {
    if (!std::isnormal(value)) continue;
    const double exact = value, quantum = std::ldexp(1.0, std::ilogb(value) - 10);
    const auto expected = static_cast<float>(std::nearbyint(exact / quantum) * quantum);
    ASSERT_EQ(round_to_tf32(value), expected) << value;
  }
}

TEST(AmaxScale, IsTheLargestPowerOfTwoThatFits) {
  EXPECT_EQ(amax_scale(448, 448), 1);
  EXPECT_EQ(amax_scale(448, 1), 256);
  EXPECT_EQ(amax_scale(448, std::nextafter(448.0, 500)), 0.5);
  EXPECT_EQ(amax_scale(57344, 3), std::ldexp(1, 14));
  std::mt19937 engine{11};
  std::uniform_real_distribution<double> exponent{-100, 100};
  for (int i = 0; i < 1000; ++i) {
    const double largest = std::exp2(exponent(engine)), scale = amax_scale(448, largest);
    EXPECT_LE(scale * largest, 448);
    EXPECT_GT(2 * scale * largest, 448);
  }
}

TEST(AmaxScale, IsOneWithoutAMeasureAndStaysInTheRangeOfF32) {
  for (const double none : {0.0, infinity, std::nan("")}) EXPECT_EQ(amax_scale(448, none), 1);
  EXPECT_EQ(amax_scale(448, 1e-320), std::ldexp(1, 126));
  EXPECT_EQ(amax_scale(448, 1e300), std::ldexp(1, -126));
}

}  // namespace
}  // namespace isoscale::program
