// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The bytes that ops read and write, each operand once, ops that are not well formed, and the
// narrow types of their elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "program/builder.hpp"
#include "program/low_precision.hpp"
#include "program/operands.hpp"
#include "program/outline.hpp"

namespace isoscale::program {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t rows = 6, columns = 10, batch = 3;
constexpr std::uint64_t stride = 16;

/// Buffers that have all been written.
class OpBytes : public testing::Test {
 protected:
  OpBytes() { builder_.begin(Section::step); }

  Slice slice(std::uint64_t count, DType type = DType::f32) {
    const BufferId id = builder_.allocate({.dtype = type, .count = count});
    builder_.emit(0, Fill{.dst = builder_.whole(id), .source = FillSource::constant});
    return builder_.whole(id);
  }
  Matrix strided(DType type = DType::f32) {
    return {.slice = slice(batch * rows * stride, type),
            .row_stride = stride,
            .batch_stride = rows * stride};
  }

  Builder builder_{mesh::Shape{}};
};

constexpr std::uint64_t elements = std::uint64_t{rows} * columns;

TEST_F(OpBytes, AreThoseOfEachOperandOnce) {
  struct Case {
    const char* what;
    Payload op;
    std::uint64_t bytes;
  };
  const auto m = [&](DType type = DType::f32) { return strided(type); };
  const Slice inverse = slice(rows);
  const std::vector<Case> cases{
      {"norm that adds",
       Norm{.rows = rows,
            .columns = columns,
            .x = m(),
            .addend = m(),
            .sum = m(),
            .y = m(),
            .inverse = inverse},
       (4 * elements + rows) * 4},
      {"moved rows: those named and those written",
       Rows{.rows = 2,
            .columns = columns,
            .each = 2,
            .src = m(),
            .dst = m(),
            .from = {5, 1, 5, Rows::no_row}},
       (3 + 2) * columns * 4},
      {"activation, by its type",
       Activation{.kind = ActivationKind::gelu,
                  .rows = rows,
                  .columns = columns,
                  .x = m(DType::bf16),
                  .y = m(DType::bf16)},
       2 * elements * 2},
      {"addition, without what lies between rows",
       Add{.rows = rows, .columns = columns, .a = m(), .b = m(), .dst = m()}, 3 * elements * 4},
      {"one matrix copied to a whole batch",
       Copy{.rows = rows,
            .columns = columns,
            .batch = batch,
            .src = {.slice = slice(rows * stride), .row_stride = stride},
            .dst = m()},
       (1 + batch) * elements * 4},
      {"cast with both copies",
       Cast{.rows = rows,
            .columns = columns,
            .src = m(DType::bf16),
            .dst = {.slice = slice(elements, DType::e4m3), .row_stride = columns},
            .transposed = {.slice = slice(elements, DType::e4m3), .row_stride = rows}},
       (2 + 1 + 1) * elements}};
  for (const Case& one : cases) builder_.emit(0, one.op);
  const auto ops = outline(builder_.finish(), Section::step, {}).ops;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const OutlineOp& op = ops.at(ops.size() - cases.size() + i);
    EXPECT_EQ(op.bytes, cases[i].bytes) << cases[i].what;
    EXPECT_EQ(op.flop, 0) << cases[i].what;
  }
}

TEST_F(OpBytes, AreNotAskedOfOpsThatAreIllFormed) {
  const Matrix x = strided();
  Matrix small = x;
  small.slice.count = rows * stride - 7;  // one short of the last row's end
  const Slice inverse = slice(rows);
  const Slice few{.buffer = inverse.buffer, .offset = 0, .count = rows - 1};
  const Softmax short_of_one{.rows = rows, .columns = columns, .x = x, .y = small};
  const Norm norm{.rows = rows, .columns = columns, .x = x, .y = x};
  const Activation gelu{
      .kind = ActivationKind::gelu, .rows = rows, .columns = columns, .x = x, .y = x};
  const auto with = [](auto op, auto member, const auto& value) {
    op.*member = value;
    return op;
  };
  Norm added = with(norm, &Norm::inverse, inverse);
  added.addend = x;
  const ActivationGradient halved{.kind = ActivationKind::swiglu,
                                  .rows = rows,
                                  .columns = columns,
                                  .dy = x,
                                  .x = x,
                                  .up = x,
                                  .dx = x};
  const std::vector<std::pair<Payload, const char*>> cases{
      {Softmax{.rows = rows, .columns = columns, .x = x, .y = x}, "none"},
      {short_of_one, "needs 90"},
      {norm, "0 inverses"},
      {with(norm, &Norm::inverse, few), "5 inverses"},
      {added, "neither"},
      {with(gelu, &Activation::kind, ActivationKind::swiglu), "swiglu"},
      {with(gelu, &Activation::up, x), "gelu"},
      {halved, "neither"}};
  for (const auto& [op, why] : cases) EXPECT_THAT(mistake(op).value_or("none"), HasSubstr(why));
  EXPECT_THROW(builder_.emit(0, short_of_one), base::Error);
}

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
    std::vector<double> result;
    for (const unsigned code : codes) result.push_back(value_of(format, code));
    return result;
  };
  using testing::ElementsAre;
  const auto two_to = [](int exponent) { return std::ldexp(1, exponent); };
  EXPECT_THAT(values(e4m3_format, {0x7E, 0x08, 0x01, 0xB8, 0x7F, 0xFF}),
              ElementsAre(448, two_to(-6), two_to(-9), -1, testing::IsNan(), testing::IsNan()));
  EXPECT_THAT(values(e5m2_format, {0x7B, 0x04, 0x01, 0x7C, 0x7D}),
              ElementsAre(57344, two_to(-14), two_to(-16), infinity, testing::IsNan()));
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

TEST(Narrow, AgreesWithRoundingTheBitsOfF32ForBf16) {
  for (const float value : floats_of_all_kinds()) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(rounded(bf16_format, value)));
      continue;
    }
    const std::uint32_t expected = (bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U;
    ASSERT_EQ(encode(bf16_format, value), expected) << value;
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
