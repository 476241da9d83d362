// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Ops on narrow types against plain f64 arithmetic.

#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using namespace program;  // NOLINT: the ops

class Narrow : public EachExecutor {
 protected:
  void multiply(DType type_a, DType type_b, DType type_d);
};

constexpr std::array narrow_types{DType::f16, DType::bf16, DType::e4m3, DType::e5m2};

TEST_P(Narrow, CastsScaleOnceRoundOnceAndTranspose) {
  constexpr std::uint32_t rows = 5, columns = 7;
  constexpr std::uint64_t count = 35;
  for (const DType type : narrow_types) {
    Sketch sketch;
    const Slice src = sketch.buffer<float>(count);
    const Slice dst = sketch.buffer(type, count), turned = sketch.buffer(type, count);
    sketch.emit(Cast{.rows = rows,
                     .columns = columns,
                     .src = Sketch::dense(src, columns),
                     .dst = Sketch::dense(dst, columns),
                     .transposed = Sketch::dense(turned, rows),
                     .scale = 1.0 / 3});
    std::vector<float> values = random_values<float>(count, 5);
    values[3] = 1e9F;  // fp8 saturates, f16 overflows
    values[4] = -1e9F;
    const auto session = played(sketch, with(src, values));
    const auto plain = read_as_doubles(*session, dst, type);
    const auto other = read_as_doubles(*session, turned, type);
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint32_t c = 0; c < columns; ++c) {
        const double expected = rounded_to(type, double{values[r * columns + c]} / 3);
        EXPECT_EQ(plain[r * columns + c], expected) << program::name(type);
        EXPECT_EQ(other[c * rows + r], expected) << program::name(type);
      }
    }
  }
}

TEST_P(Narrow, CastsByTheLargestMagnitude) {
  for (const double largest : {3.0, 448.0, 449.0, 1e-30, 0.0, HUGE_VAL}) {
    Sketch sketch;
    const Slice src = sketch.buffer(DType::bf16, 4), turned = sketch.buffer(DType::e4m3, 4);
    const Slice descale = sketch.buffer<float>(1);
    sketch.emit(Cast{.rows = 2,
                     .columns = 2,
                     .src = Sketch::dense(src, 2),
                     .transposed = Sketch::dense(turned, 2),
                     .scaling = CastScale::amax,
                     .target = 448,
                     .descale = descale.buffer});
    const double peak = rounded_to(DType::bf16, largest);
    const auto session = played(sketch, with(src, DType::bf16, {peak / 4, -peak, peak / 2, 0}));
    const bool measures = largest > 0 && std::isfinite(largest);
    const double scale = measures ? std::exp2(std::floor(std::log2(448 / peak))) : 1.0;
    EXPECT_EQ(get<float>(*session, descale).front(), static_cast<float>(1 / scale)) << largest;
    if (!measures) continue;
    EXPECT_EQ(read_as_doubles(*session, turned, DType::e4m3),
              all_rounded(DType::e4m3, {peak / 4 * scale, peak / 2 * scale, -peak * scale, 0}));
  }
}

TEST_P(Narrow, AddsAndFillsAsF32Does) {
  constexpr std::uint64_t count = 200;
  for (const DType type : {DType::f16, DType::bf16}) {
    Sketch sketch;
    const Slice a = sketch.buffer(type, count), b = sketch.buffer(type, count);
    const Slice wide = sketch.buffer<float>(count), sum = sketch.buffer(type, count);
    for (const Slice& into : {a, wide}) {
      program::Fill fill{.dst = into, .key = 9, .exponent = -5};
      fill.shard = {.extents = {1, 1, count}, .local = {0, 0, 1}, .global = {0, 0, 3}};
      sketch.emit(fill);
    }
    program::Add add{.rows = 1, .columns = count, .a = Sketch::dense(a, count), .scale = 0.5};
    add.b = Sketch::dense(b, count);
    add.dst = Sketch::dense(sum, count);
    sketch.emit(add);
    const auto addend = all_rounded(type, random_values<double>(count, 3));
    const auto session = played(sketch, with(b, type, addend));
    auto expected = read_as_doubles(*session, a, type);
    EXPECT_EQ(expected, read_as_doubles(*session, wide, DType::f32)) << "fills are exact";
    for (std::size_t i = 0; i < count; ++i) expected[i] += 0.5 * addend[i];
    EXPECT_EQ(read_as_doubles(*session, sum, type), all_rounded(type, expected));
  }
}

/// D = alpha A op(B) with scales, of these types, where sums are exact whatever their order.
void Narrow::multiply(DType type_a, DType type_b, DType type_d) {
  constexpr std::uint32_t m = 16, n = 32, k = 48;
  Sketch sketch;
  const Slice a = sketch.buffer(type_a, m * k), b = sketch.buffer(type_b, n * k);
  const Slice c = sketch.buffer(type_d, m * n), d = sketch.buffer(type_d, m * n);
  const Slice scale_a = sketch.buffer<float>(1), scale_b = sketch.buffer<float>(1);
  Gemm gemm{.m = m, .n = n, .k = k, .transpose_b = Transpose::yes, .alpha = 0.5, .beta = 1};
  gemm.a = Sketch::dense(a, k);
  gemm.b = Sketch::dense(b, k);
  gemm.c = Sketch::dense(c, n);
  gemm.d = Sketch::dense(d, n);
  const bool scaled = program::element_size(type_a) == 1;
  if (scaled) gemm.descale_a = scale_a.buffer;
  if (scaled) gemm.descale_b = scale_b.buffer;
  sketch.emit(gemm);
  const auto values = [](const Slice& slice, std::uint64_t seed, double modulus) {
    auto all = whole_values<double>(slice.count, seed);
    for (double& value : all) value = std::fmod(value, modulus);
    return all;
  };
  const auto va = values(a, 1, 4), vb = values(b, 2, 4), vc = values(c, 3, 8);
  const auto session = played(sketch, with(a, type_a, va), with(b, type_b, vb), with(c, type_d, vc),
                              with<float>(scale_a, {0.25F}), with<float>(scale_b, {8.0F}));
  const auto result = read_as_doubles(*session, d, type_d);
  for (std::uint32_t i = 0; i < m; ++i) {
    for (std::uint32_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::uint32_t l = 0; l < k; ++l) sum += va[i * k + l] * vb[j * k + l];
      const double exact = 0.5 * (scaled ? 2 : 1) * sum + vc[i * n + j];
      EXPECT_EQ(result[i * n + j], rounded_to(type_d, exact));
    }
  }
}

TEST_P(Narrow, GemmsAccumulateWidelyAndRoundOnce) {
  for (const DType type : {DType::f16, DType::bf16}) {
    multiply(type, type, type);
    multiply(type, type, DType::f32);
  }
  multiply(DType::e4m3, DType::e4m3, DType::bf16);
  multiply(DType::e5m2, DType::e4m3, DType::bf16);
  multiply(DType::e4m3, DType::e5m2, DType::f32);
}

/// For single elements libraries may not use their tf32 units.
TEST_P(Narrow, Tf32DropsWhatItsMantissaCannotHold) {
  constexpr std::uint32_t edge = 256, elements = edge * edge;
  Sketch sketch;
  const Matrix a = sketch.matrix<float>(edge, edge), b = sketch.matrix<float>(edge, edge);
  const Matrix d = sketch.matrix<float>(edge, edge);
  sketch.emit(Gemm{
      .m = edge, .n = edge, .k = edge, .mode = program::ComputeMode::tf32, .a = a, .b = b, .d = d});
  // Three quarters between two neighbours of tf32, which may round to nearest or down.
  const auto session =
      played(sketch, with(a.slice, std::vector<float>(elements, 1 + std::ldexp(3.0F, -12))),
             with(b.slice, std::vector<float>(elements, 3)));
  const std::string arithmetic = session->arithmetic(program::Section::step);
  const bool keeps_f32 = arithmetic.find("f32 inputs") != std::string::npos &&
                         arithmetic.find("tf32 inputs") == std::string::npos;
  const float f32 = 768 * (1 + std::ldexp(3.0F, -12)), up = 768 * (1 + std::ldexp(1.0F, -10));
  const std::set<float> right = keeps_f32 ? std::set{f32} : std::set{768.0F, up};
  for (const float got : get<float>(*session, d.slice)) {
    EXPECT_TRUE(right.contains(got)) << got << arithmetic;
  }
}

TEST_P(Narrow, UpdatesMastersAndRoundsWeightsFromThem) {
  constexpr std::uint64_t count = 300;
  for (const DType type : {DType::f16, DType::bf16}) {
    Sketch sketch;
    const Slice weight = sketch.buffer(type, count), master = sketch.buffer<float>(count);
    const Slice gradient = sketch.buffer<float>(count);
    program::Update update{.weight = weight, .master = master, .gradient = gradient};
    update.gradient_scale = 0.5;
    update.rate = 0.25;
    sketch.emit(update);
    const auto before = random_values<float>(count, 1), slope = random_values<float>(count, 2);
    const auto session = played(sketch, with(master, before), with(gradient, slope));
    const auto after = get<float>(*session, master);
    const auto narrow = read_as_doubles(*session, weight, type);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_FLOAT_EQ(after[i], before[i] - 0.25F * (slope[i] * 0.5F));
      EXPECT_EQ(narrow[i], rounded_to(type, double{after[i]}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Executors, Narrow, each_narrow_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
