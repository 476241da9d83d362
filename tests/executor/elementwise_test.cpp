// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "program/fill_and_checksum.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::Add;
using program::Cast;
using program::Fill;
using program::Matrix;
using program::Shard;
using program::Slice;

class Elementwise : public EachExecutor {};

struct Addition {
  Matrix a, b, dst;
  double scale = 1;
};

/// Small whole numbers: exact also where the product is not rounded.
template <class T>
void test_add(Sketch& sketch, const std::function<std::unique_ptr<Session>(const Sketch&)>& prepare,
              const Addition& add) {
  constexpr std::uint32_t rows = 6, columns = 9;
  const auto& [a, b, dst, scale] = add;
  sketch.emit(Add{.rows = rows, .columns = columns, .a = a, .b = b, .dst = dst, .scale = scale});
  const auto session = prepare(sketch);
  put(*session, a.slice, whole_values<T>(a.slice.count, 1));
  put(*session, b.slice, whole_values<T>(b.slice.count, 2));
  const auto va = get<T>(*session, a.slice), vb = get<T>(*session, b.slice);
  auto expected = get<T>(*session, dst.slice);
  session->play(program::Section::step, Trace::off);
  for (std::uint64_t r = 0; r < rows; ++r) {
    for (std::uint64_t c = 0; c < columns; ++c) {
      const auto product = static_cast<T>(vb[r * b.row_stride + c] * static_cast<T>(scale));
      expected[r * dst.row_stride + c] = static_cast<T>(va[r * a.row_stride + c] + product);
    }
  }
  EXPECT_EQ(get<T>(*session, dst.slice), expected) << "scale " << scale;
}

TEST_P(Elementwise, AddsDenseStridedAndInPlace) {
  const auto run = [&]<class T>(T /*type*/, double scale) {
    const auto ready = [&](const Sketch& sketch) { return prepare(sketch); };
    for (const std::uint64_t stride : {9U, 12U}) {
      const auto matrix = [&](Sketch& sketch) {
        return Matrix{.slice = sketch.buffer<T>(6 * stride), .row_stride = stride};
      };
      Sketch apart, onto_a, onto_b, twice;
      const Matrix a = matrix(apart), b = matrix(apart), dst = matrix(apart);
      test_add<T>(apart, ready, {a, b, dst, scale});
      const Matrix c = matrix(onto_a), d = matrix(onto_a);
      test_add<T>(onto_a, ready, {c, d, c, scale});
      const Matrix e = matrix(onto_b), f = matrix(onto_b);
      test_add<T>(onto_b, ready, {e, f, f, scale});
      const Matrix g = matrix(twice);
      test_add<T>(twice, ready, {g, g, g, scale});
    }
  };
  for (const double scale : {1.0, 3.0, -0.25}) {
    run(float{}, scale);
    run(double{}, scale);
    if (scale != std::trunc(scale)) continue;
    run(std::int64_t{}, scale);
    run(std::int32_t{}, scale);
    run(std::int8_t{}, scale);
    run(std::uint8_t{}, scale);
  }
}

TEST_P(Elementwise, AddsRefuseAFactorThatIntegersDoNotHave) {
  Sketch sketch;
  const Slice a = sketch.buffer<std::int32_t>(4);
  const Matrix row{.slice = a, .row_stride = 4};
  sketch.emit(Add{.rows = 1, .columns = 4, .a = row, .b = row, .dst = row, .scale = 0.5});
  EXPECT_THROW(static_cast<void>(prepare(sketch)), base::Error);
}

Cast cast(const Slice& src, const Slice& dst, double scale = 1) {
  return {.columns = static_cast<std::uint32_t>(src.count),
          .src = {.slice = src, .row_stride = src.count},
          .dst = {.slice = dst, .row_stride = dst.count},
          .scale = scale};
}

TEST_P(Elementwise, CastsRoundToNearestEven) {
  Sketch sketch;
  const Slice wide = sketch.buffer<double>(5), narrow = sketch.buffer<float>(5);
  const Slice back = sketch.buffer<double>(5);
  sketch.emit(cast(wide, narrow));
  sketch.emit(cast(narrow, back, 0.5));
  const auto session = prepare(sketch);
  const double ulp = std::ldexp(1.0, -23);  // of f32 at 1
  put<double>(*session, wide, {1 + ulp / 2, 1 + 1.5 * ulp, 1 + 0.51 * ulp, -3, 1e-3});
  session->play(program::Section::step, Trace::off);
  const auto one_up = static_cast<float>(1 + ulp), two_up = static_cast<float>(1 + 2 * ulp);
  EXPECT_THAT(get<float>(*session, narrow),
              testing::ElementsAre(1.0F, two_up, one_up, -3.0F, 1e-3F));
  EXPECT_THAT(get<double>(*session, back),
              testing::ElementsAre(0.5, 0.5 * two_up, 0.5 * one_up, -1.5, 0.5 * 1e-3F));
}

TEST_P(Elementwise, ScaledCastRoundsOnce) {
  Sketch sketch;
  const Slice a = sketch.buffer<float>(1), b = sketch.buffer<float>(1);
  sketch.emit(cast(a, b, 1.0 / 3));
  const auto session = prepare(sketch);
  put<float>(*session, a, {10});
  session->play(program::Section::step, Trace::off);
  EXPECT_THAT(get<float>(*session, b), testing::ElementsAre(static_cast<float>(10.0 / 3)));
}

template <class T>
std::vector<T> filled(EachExecutor& /*test*/, Session& session, const Slice& slice) {
  session.play(program::Section::step, Trace::off);
  return get<T>(session, slice);
}

TEST_P(Elementwise, FillDrawsFromTheGrid) {
  Sketch sketch;
  constexpr std::uint64_t count = 100'000;
  const Slice dst = sketch.buffer<double>(count);
  sketch.emit(Fill{.dst = dst,
                   .shard = {.extents = {1, 1, count}, .local = {0, 0, 1}, .global = {0, 0, 1}},
                   .key = 42,
                   .exponent = -3});
  const auto session = prepare(sketch);
  const auto values = filled<double>(*this, *session, dst);
  std::set<double> seen;
  double sum = 0;
  for (const double value : values) {
    const double integer = value * 8;
    EXPECT_EQ(integer, std::round(integer));
    EXPECT_LE(std::abs(integer), 127);
    seen.insert(integer);
    sum += integer;
  }
  EXPECT_EQ(seen.size(), 255U);
  // Standard deviation of one value 73.6, of the mean of 1e5 of them 0.23.
  EXPECT_LT(std::abs(sum / count), 1.2);
}

TEST_P(Elementwise, FillOfAShardIsThePartOfTheWhole) {
  // A 4 x 6 tensor; its columns 2 to 4, transposed, in f32.
  Sketch sketch;
  const Slice whole = sketch.buffer<double>(24), part = sketch.buffer<float>(12);
  sketch.emit(Fill{.dst = whole,
                   .shard = {.extents = {1, 4, 6}, .local = {0, 6, 1}, .global = {0, 6, 1}},
                   .key = 7,
                   .exponent = 2});
  sketch.emit(
      Fill{.dst = part,
           .shard = {.extents = {3, 4, 1}, .local = {4, 1, 0}, .global = {1, 6, 0}, .base = 2},
           .key = 7,
           .exponent = 2});
  const auto session = prepare(sketch);
  const auto all = filled<double>(*this, *session, whole);
  const auto some = get<float>(*session, part);
  for (std::uint64_t column = 0; column < 3; ++column) {
    for (std::uint64_t row = 0; row < 4; ++row) {
      EXPECT_EQ(some[column * 4 + row], static_cast<float>(all[row * 6 + column + 2]));
    }
  }
}

TEST_P(Elementwise, FillWithAConstantWritesItAndNothingElse) {
  // The middle columns of a 3 x 4 matrix.
  Sketch sketch;
  const Slice whole = sketch.buffer<double>(12), single = sketch.buffer<float>(5);
  sketch.emit(Fill{.dst = {.buffer = whole.buffer, .offset = 1, .count = 10},
                   .shard = {.extents = {1, 3, 2}, .local = {0, 4, 1}, .global = {0, 2, 1}},
                   .source = program::FillSource::constant,
                   .key = 7,
                   .value = 1.0 / 3});
  sketch.emit(Fill{.dst = single,
                   .shard = {.extents = {1, 1, 5}, .local = {0, 0, 1}},
                   .source = program::FillSource::constant,
                   .value = 1.0 / 3});
  const auto session = prepare(sketch);
  put<double>(*session, whole, std::vector<double>(12, 9));
  const double third = 1.0 / 3;
  EXPECT_THAT(filled<double>(*this, *session, whole),
              testing::ElementsAre(9, third, third, 9, 9, third, third, 9, 9, third, third, 9));
  EXPECT_THAT(get<float>(*session, single), testing::Each(static_cast<float>(1.0 / 3)));
}

TEST_P(Elementwise, FillDependsOnTheKey) {
  Sketch sketch;
  const Slice a = sketch.buffer<double>(64), b = sketch.buffer<double>(64);
  const Shard shard{.extents = {64, 1, 1}, .local = {1, 0, 0}, .global = {1, 0, 0}};
  sketch.emit(Fill{.dst = a, .shard = shard, .key = 1});
  sketch.emit(Fill{.dst = b, .shard = shard, .key = 2});
  const auto session = prepare(sketch);
  EXPECT_NE(filled<double>(*this, *session, a), get<double>(*session, b));
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

INSTANTIATE_TEST_SUITE_P(Executors, Elementwise, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
