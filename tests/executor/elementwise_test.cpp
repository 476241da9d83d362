// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <cmath>

#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::Add;
using program::Cast;
using program::Matrix;
using program::Slice;

class Elementwise : public EachExecutor {
 protected:
  /// Adds matrices of 6 x 9 small whole numbers: exact also where the product is not rounded.
  template <class T>
  void test_add(std::uint64_t stride, std::size_t from_b, std::size_t into, double scale) {
    constexpr std::uint32_t rows = 6, columns = 9;
    Sketch sketch;
    std::vector<Matrix> all;
    for (int i = 0; i < 3; ++i) all.push_back(sketch.matrix<T>(rows, stride));
    const Matrix &a = all[0], &b = all[from_b], &dst = all[into];
    sketch.emit(Add{.rows = rows, .columns = columns, .a = a, .b = b, .dst = dst, .scale = scale});
    std::vector<std::vector<T>> before;
    for (std::uint64_t seed : {1U, 2U, 3U}) before.push_back(whole_values<T>(rows * stride, seed));
    const auto session = played(sketch, with(all[0].slice, before[0]),
                                with(all[1].slice, before[1]), with(all[2].slice, before[2]));
    std::vector<T> expected = before[into];
    for (std::uint64_t r = 0; r < rows; ++r) {
      for (std::uint64_t i = r * stride; i < r * stride + columns; ++i) {
        const auto product = static_cast<T>(before[from_b][i] * static_cast<T>(scale));
        expected[i] = static_cast<T>(before[0][i] + product);
      }
    }
    EXPECT_EQ(get<T>(*session, dst.slice), expected)
        << "scale " << scale << " stride " << stride << " of " << from_b << " into " << into;
  }

  template <class T>
  void test_adds(double scale) {
    for (const std::uint64_t stride : {9U, 12U}) {
      test_add<T>(stride, 1, 2, scale);
      test_add<T>(stride, 1, 0, scale);
      test_add<T>(stride, 1, 1, scale);
      test_add<T>(stride, 0, 0, scale);
    }
  }
};

TEST_P(Elementwise, AddsDenseStridedAndInPlace) {
  for (const double scale : {1.0, 3.0, -0.25}) {
    test_adds<float>(scale);
    test_adds<double>(scale);
    if (scale != std::trunc(scale)) continue;
    test_adds<std::int64_t>(scale);
    test_adds<std::int32_t>(scale);
    test_adds<std::int8_t>(scale);
    test_adds<std::uint8_t>(scale);
  }
}

TEST_P(Elementwise, AddsRefuseAFactorThatIntegersDoNotHave) {
  expect_refused([](Sketch& sketch) {
    const Matrix row = sketch.matrix<std::int32_t>(1, 4);
    sketch.emit(Add{.rows = 1, .columns = 4, .a = row, .b = row, .dst = row, .scale = 0.5});
  });
}

Cast cast(const Slice& src, const Slice& dst, double scale = 1) {
  return {.columns = static_cast<std::uint32_t>(src.count),
          .src = Sketch::dense(src, src.count),
          .dst = Sketch::dense(dst, dst.count),
          .scale = scale};
}

TEST_P(Elementwise, CastsRoundToNearestEvenAndScaledOnesOnce) {
  Sketch sketch;
  const Slice wide = sketch.buffer<double>(5), narrow = sketch.buffer<float>(5);
  const Slice back = sketch.buffer<double>(5);
  const Slice ten = sketch.buffer<float>(1), third = sketch.buffer<float>(1);
  sketch.emit(cast(wide, narrow));
  sketch.emit(cast(narrow, back, 0.5));
  sketch.emit(cast(ten, third, 1.0 / 3));
  const double ulp = std::ldexp(1.0, -23);  // of f32 at 1
  const auto session =
      played(sketch, with<double>(wide, {1 + ulp / 2, 1 + 1.5 * ulp, 1 + 0.51 * ulp, -3, 1e-3}),
             with<float>(ten, {10}));
  const auto one_up = static_cast<float>(1 + ulp), two_up = static_cast<float>(1 + 2 * ulp);
  EXPECT_THAT(get<float>(*session, narrow),
              testing::ElementsAre(1.0F, two_up, one_up, -3.0F, 1e-3F));
  EXPECT_THAT(get<double>(*session, back),
              testing::ElementsAre(0.5, 0.5 * two_up, 0.5 * one_up, -1.5, 0.5 * 1e-3F));
  EXPECT_THAT(get<float>(*session, third), testing::ElementsAre(static_cast<float>(10.0 / 3)));
}

INSTANTIATE_TEST_SUITE_P(Executors, Elementwise, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
