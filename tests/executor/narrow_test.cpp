// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Ops on narrow types against plain f64 arithmetic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "program/low_precision.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::Cast;
using program::CastScale;
using program::DType;
using program::Gemm;
using program::Matrix;
using program::Slice;
using program::Transpose;

class Narrow : public EachExecutor {};

void write(Session& session, const Slice& slice, DType type, const std::vector<double>& values) {
  const program::NarrowFormat format = *program::narrow_format(type);
  std::vector<std::byte> raw;
  for (const double value : values) {
    const std::uint16_t code = encode(format, value);
    raw.push_back(static_cast<std::byte>(code & 0xFFU));
    if (format.bits == 16) raw.push_back(static_cast<std::byte>(code >> 8U));
  }
  session.write(slice, raw);
}
std::vector<double> read(Session& session, const Slice& slice, DType type) {
  const program::NarrowFormat format = *program::narrow_format(type);
  const std::size_t size = program::element_size(type);
  std::vector<std::byte> raw(slice.count * size);
  session.read(slice, raw);
  std::vector<double> values;
  for (std::size_t i = 0; i < raw.size(); i += size) {
    auto code = static_cast<unsigned>(raw[i]);
    if (size == 2) code |= static_cast<unsigned>(raw[i + 1]) << 8U;
    values.push_back(static_cast<double>(decode(format, static_cast<std::uint16_t>(code))));
  }
  return values;
}

double rounded(DType type, double value) {
  const program::NarrowFormat format = *program::narrow_format(type);
  return static_cast<double>(decode(format, encode(format, value)));
}

constexpr std::array narrow_types{DType::f16, DType::bf16, DType::e4m3, DType::e5m2};

Matrix rows_of(const Slice& slice, std::uint64_t columns) { return {slice, columns}; }

TEST_P(Narrow, CastsScaleOnceRoundOnceAndTranspose) {
  constexpr std::uint32_t rows = 5, columns = 7;
  constexpr std::uint64_t count = 35;
  for (const DType type : narrow_types) {
    Sketch sketch;
    const Slice src = sketch.buffer<float>(count);
    const Slice dst = sketch.buffer(type, count);
    const Slice turned = sketch.buffer(type, count);
    sketch.emit(Cast{.rows = rows,
                     .columns = columns,
                     .src = rows_of(src, columns),
                     .dst = rows_of(dst, columns),
                     .transposed = rows_of(turned, rows),
                     .scale = 1.0 / 3});
    const auto session = prepare(sketch);
    std::vector<float> values = random_values<float>(count, 5);
    values[3] = 1e9F;  // fp8 saturates, f16 overflows
    values[4] = -1e9F;
    put<float>(*session, src, values);
    session->play(program::Section::step, Trace::off);
    const auto plain = read(*session, dst, type), other = read(*session, turned, type);
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint32_t c = 0; c < columns; ++c) {
        const double expected = rounded(type, static_cast<double>(values[r * columns + c]) / 3);
        EXPECT_EQ(plain[r * columns + c], expected) << program::name(type);
        EXPECT_EQ(other[c * rows + r], expected) << program::name(type);
      }
    }
  }
}

TEST_P(Narrow, CastsByTheLargestMagnitude) {
  for (const float largest :
       {3.0F, 448.0F, 449.0F, 1e-30F, 0.0F, std::numeric_limits<float>::infinity()}) {
    Sketch sketch;
    const Slice src = sketch.buffer(DType::bf16, 4), turned = sketch.buffer(DType::e4m3, 4);
    const Slice descale = sketch.buffer<float>(1);
    sketch.emit(Cast{.rows = 2,
                     .columns = 2,
                     .src = rows_of(src, 2),
                     .transposed = rows_of(turned, 2),
                     .scaling = CastScale::amax,
                     .target = 448,
                     .descale = descale.buffer});
    const auto session = prepare(sketch);
    const double peak = rounded(DType::bf16, static_cast<double>(largest));
    write(*session, src, DType::bf16, {peak / 4, -peak, peak / 2, 0});
    session->play(program::Section::step, Trace::off);
    const bool measures = largest > 0 && std::isfinite(largest);
    const double scale = measures ? std::exp2(std::floor(std::log2(448 / peak))) : 1.0;
    EXPECT_EQ(get<float>(*session, descale).front(), static_cast<float>(1 / scale)) << largest;
    const double zero = 0;
    const auto expect = [&](double value) { return rounded(DType::e4m3, value * scale); };
    if (!measures) continue;
    EXPECT_THAT(read(*session, turned, DType::e4m3),
                testing::ElementsAre(expect(peak / 4), expect(peak / 2), expect(-peak), zero));
  }
}

TEST_P(Narrow, AddsAndFillsAsF32Does) {
  constexpr std::uint64_t count = 200;
  for (const DType type : {DType::f16, DType::bf16}) {
    Sketch sketch;
    const Slice a = sketch.buffer(type, count), b = sketch.buffer(type, count);
    const Slice wide = sketch.buffer<float>(count), sum = sketch.buffer(type, count);
    const program::Shard shard{.extents = {1, 1, count}, .local = {0, 0, 1}, .global = {0, 0, 3}};
    for (const Slice& into : {a, wide}) {
      sketch.emit(program::Fill{.dst = into, .shard = shard, .key = 9, .exponent = -5});
    }
    sketch.emit(program::Add{.rows = 1,
                             .columns = count,
                             .a = rows_of(a, count),
                             .b = rows_of(b, count),
                             .dst = rows_of(sum, count),
                             .scale = 0.5});
    const auto session = prepare(sketch);
    std::vector<double> addend;
    for (const float value : random_values<float>(count, 3)) {
      addend.push_back(rounded(type, static_cast<double>(value)));
    }
    write(*session, b, type, addend);
    session->play(program::Section::step, Trace::off);
    const auto filled = read(*session, a, type), added = read(*session, sum, type);
    const auto expected = get<float>(*session, wide);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(filled[i], static_cast<double>(expected[i])) << "fills are exact in bf16 and f16";
      EXPECT_EQ(added[i], rounded(type, filled[i] + 0.5 * addend[i]));
    }
  }
}

/// D = alpha A op(B) with scales, of these types, where sums are exact whatever their order.
template <class Make>
void multiply(const Make& make, DType type_a, DType type_b, DType type_d) {
  constexpr std::uint32_t m = 16, n = 32, k = 48;
  constexpr std::uint64_t of_a = 768, of_b = 1536, of_d = 512;
  Sketch sketch;
  const Slice a = sketch.buffer(type_a, of_a), b = sketch.buffer(type_b, of_b);
  const Slice c = sketch.buffer(type_d, of_d), d = sketch.buffer(type_d, of_d);
  const Slice scale_a = sketch.buffer<float>(1), scale_b = sketch.buffer<float>(1);
  Gemm gemm{.m = m,
            .n = n,
            .k = k,
            .transpose_b = Transpose::yes,
            .alpha = 0.5,
            .beta = 1,
            .a = rows_of(a, k),
            .b = rows_of(b, k),
            .c = rows_of(c, n),
            .d = rows_of(d, n)};
  const bool scaled = program::element_size(type_a) == 1;
  if (scaled) {
    gemm.descale_a = scale_a.buffer;
    gemm.descale_b = scale_b.buffer;
  }
  sketch.emit(gemm);
  const auto session = make(sketch);
  const auto fill = [&](const Slice& slice, DType type, std::uint64_t seed, double modulus) {
    std::vector<double> values;
    for (const double value : whole_values<double>(slice.count, seed)) {
      values.push_back(std::fmod(value, modulus));
    }
    if (type == DType::f32) {
      put<float>(*session, slice, std::vector<float>(values.begin(), values.end()));
    } else {
      write(*session, slice, type, values);
    }
    return values;
  };
  const auto va = fill(a, type_a, 1, 4), vb = fill(b, type_b, 2, 4), vc = fill(c, type_d, 3, 8);
  put<float>(*session, scale_a, {0.25F});
  put<float>(*session, scale_b, {8.0F});
  session->play(program::Section::step, Trace::off);
  std::vector<double> result;
  if (type_d == DType::f32) {
    const auto values = get<float>(*session, d);
    result.assign(values.begin(), values.end());
  } else {
    result = read(*session, d, type_d);
  }
  for (std::uint32_t i = 0; i < m; ++i) {
    for (std::uint32_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::uint32_t l = 0; l < k; ++l) sum += va[i * k + l] * vb[j * k + l];
      const double exact = 0.5 * (scaled ? 2 : 1) * sum + vc[i * n + j];
      EXPECT_EQ(result[i * n + j], type_d == DType::f32 ? exact : rounded(type_d, exact));
    }
  }
}

TEST_P(Narrow, GemmsAccumulateWidelyAndRoundOnce) {
  const auto make = [this](const Sketch& sketch) { return prepare(sketch); };
  for (const DType type : {DType::f16, DType::bf16}) {
    multiply(make, type, type, type);
    multiply(make, type, type, DType::f32);
  }
  multiply(make, DType::e4m3, DType::e4m3, DType::bf16);
  multiply(make, DType::e5m2, DType::e4m3, DType::bf16);
  multiply(make, DType::e4m3, DType::e5m2, DType::f32);
}

/// The product is large enough for libraries to use their tf32 units: for single elements they may
/// not.
TEST_P(Narrow, Tf32DropsWhatItsMantissaCannotHold) {
  constexpr std::uint32_t edge = 256, elements = edge * edge;
  Sketch sketch;
  const Slice a = sketch.buffer<float>(elements), b = sketch.buffer<float>(elements),
              d = sketch.buffer<float>(elements);
  sketch.emit(Gemm{.m = edge,
                   .n = edge,
                   .k = edge,
                   .mode = program::ComputeMode::tf32,
                   .a = rows_of(a, edge),
                   .b = rows_of(b, edge),
                   .d = rows_of(d, edge)});
  const auto session = prepare(sketch);
  // Three quarters between two neighbours of tf32, which may round to nearest or down.
  put<float>(*session, a, std::vector<float>(elements, 1 + std::ldexp(3.0F, -12)));
  put<float>(*session, b, std::vector<float>(elements, 3));
  session->play(program::Section::step, Trace::off);
  const std::string arithmetic = session->arithmetic(program::Section::step);
  const auto result = get<float>(*session, d);
  if (arithmetic.find("f32 inputs") != std::string::npos &&
      arithmetic.find("tf32 inputs") == std::string::npos) {
    EXPECT_THAT(result, testing::Each(768 * (1 + std::ldexp(3.0F, -12)))) << arithmetic;
  } else {
    EXPECT_THAT(result, testing::Each(testing::AnyOf(768.0F, 768 * (1 + std::ldexp(1.0F, -10)))))
        << arithmetic;
  }
}

TEST_P(Narrow, UpdatesMastersAndRoundsWeightsFromThem) {
  constexpr std::uint64_t count = 300;
  for (const DType type : {DType::f16, DType::bf16}) {
    Sketch sketch;
    const Slice weight = sketch.buffer(type, count), master = sketch.buffer<float>(count);
    const Slice gradient = sketch.buffer<float>(count);
    sketch.emit(program::Update{.weight = weight,
                                .master = master,
                                .gradient = gradient,
                                .gradient_scale = 0.5,
                                .rate = 0.25});
    const auto session = prepare(sketch);
    const auto before = random_values<float>(count, 1), slope = random_values<float>(count, 2);
    put<float>(*session, master, before);
    put<float>(*session, gradient, slope);
    session->play(program::Section::step, Trace::off);
    const auto after = get<float>(*session, master);
    const auto narrow = read(*session, weight, type);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_FLOAT_EQ(after[i], before[i] - 0.25F * (slope[i] * 0.5F));
      EXPECT_EQ(narrow[i], rounded(type, static_cast<double>(after[i])));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Executors, Narrow, each_narrow_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
