// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Copies between layouts and between memories, advice about memory, sums and casts.

#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using namespace program;  // NOLINT: the ops

class Copies : public EachExecutor {};

/// Copies 3 x 4 x 5 between two layouts; the rest of the destination must stay.
TEST_P(Copies, BetweenAllLayouts) {
  struct Strides {
    std::uint64_t row, batch;
  };
  const std::vector<Strides> layouts{
      {.row = 5, .batch = 20},   // dense
      {.row = 7, .batch = 28},   // padded rows
      {.row = 5, .batch = 31},   // dense matrices apart
      {.row = 15, .batch = 5},   // interleaved
      {.row = 8, .batch = 101},  // all apart
      {.row = 5, .batch = 0},    // one matrix for the whole batch
  };
  const auto values = random_values<double>(256, 5), before = random_values<double>(256, 6);
  for (const Strides from : layouts) {
    for (const Strides to : layouts) {
      if (to.batch == 0) continue;
      Sketch sketch;
      const Slice src = sketch.buffer(DType::f64, 256, Space::pinned);
      const Slice dst = sketch.buffer<double>(256);
      sketch.emit(Copy{.rows = 4,
                       .columns = 5,
                       .batch = 3,
                       .src = {.slice = src, .row_stride = from.row, .batch_stride = from.batch},
                       .dst = {.slice = dst, .row_stride = to.row, .batch_stride = to.batch}});
      auto expected = before;
      for (std::uint64_t i = 0; i < 3 * 4 * 5; ++i) {
        const std::uint64_t b = i / 20, r = i / 5 % 4, c = i % 5;
        expected[b * to.batch + r * to.row + c] = values[b * from.batch + r * from.row + c];
      }
      EXPECT_EQ(get<double>(*played(sketch, with(src, values), with(dst, before)), dst), expected)
          << from.row << "," << from.batch << " to " << to.row << "," << to.batch;
    }
  }
}

/// Copies one row.
Copy row(const Slice& src, const Slice& dst) {
  return {.rows = 1,
          .columns = static_cast<std::uint32_t>(src.count),
          .src = Sketch::dense(src, src.count),
          .dst = Sketch::dense(dst, dst.count)};
}

TEST_P(Copies, BetweenAllMemories) {
  const auto values = random_values<double>(1'000, 9);
  for (const Space from : {Space::device, Space::pinned, Space::pageable, Space::managed}) {
    for (const Space to : {Space::device, Space::pinned, Space::pageable, Space::managed}) {
      Sketch sketch;
      const Slice src = sketch.buffer(DType::f64, values.size(), from);
      const Slice dst = sketch.buffer(DType::f64, values.size(), to);
      sketch.emit(row(src, dst));
      EXPECT_EQ(get<double>(*played(sketch, with(src, values)), dst), values)
          << program::name(from) << " to " << program::name(to);
    }
  }
}

TEST_P(Copies, AdviceChangesNoElement) {
  Sketch sketch;
  const Slice managed = sketch.buffer(DType::f64, 64, Space::managed);
  for (const auto advice : {program::Advice::prefer_device, program::Advice::prefetch_device,
                            program::Advice::prefetch_host}) {
    sketch.emit(program::Advise{.slice = managed, .advice = advice});
  }
  const auto values = random_values<double>(64, 9);
  const auto session = played(sketch, with(managed, values));
  session->play({.section = program::Section::step, .trace = Trace::on});
  EXPECT_EQ(get<double>(*session, managed), values);
}

INSTANTIATE_TEST_SUITE_P(Executors, Copies, each_backend(), name_of);

class Elementwise : public EachExecutor {
 protected:
  /// Adds matrices of 6 x 9 small whole numbers: exact also where the product is not rounded.
  template <class T>
  void test_add(std::uint64_t stride, std::size_t from_b, std::size_t into, double scale) {
    constexpr std::uint32_t rows = 6, columns = 9;
    Sketch sketch;
    std::vector<Matrix> all;
    std::vector<std::vector<T>> before;
    for (std::uint64_t seed : {1U, 2U, 3U}) {
      all.push_back(sketch.matrix<T>(rows, stride));
      before.push_back(whole_values<T>(rows * stride, seed));
    }
    sketch.emit(Add{.rows = rows,
                    .columns = columns,
                    .a = all[0],
                    .b = all[from_b],
                    .dst = all[into],
                    .scale = scale});
    const auto session = played(sketch, with(all[0].slice, before[0]),
                                with(all[1].slice, before[1]), with(all[2].slice, before[2]));
    std::vector<T> expected = before[into];
    for (std::uint64_t i = 0; i < expected.size(); ++i) {
      if (i % stride >= columns) continue;
      const auto product = static_cast<T>(before[from_b][i] * static_cast<T>(scale));
      expected[i] = static_cast<T>(before[0][i] + product);
    }
    EXPECT_EQ(get<T>(*session, all[into].slice), expected)
        << "scale " << scale << " stride " << stride << " of " << from_b << " into " << into;
  }

  template <class... T>
  void test_adds(double scale) {
    for (const std::uint64_t stride : {9U, 12U}) {
      (test_add<T>(stride, 1, 2, scale), ...);
      (test_add<T>(stride, 1, 0, scale), ...);
      (test_add<T>(stride, 1, 1, scale), ...);
      (test_add<T>(stride, 0, 0, scale), ...);
    }
  }
};

TEST_P(Elementwise, AddsDenseStridedAndInPlace) {
  for (const double scale : {1.0, 3.0, -0.25}) test_adds<float, double>(scale);
  for (const double scale : {1.0, 3.0}) {
    test_adds<std::int64_t, std::int32_t, std::int8_t, std::uint8_t>(scale);
  }
}

program::Cast cast(const Slice& src, const Slice& dst, double scale = 1) {
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
  EXPECT_THAT(get<float>(*session, narrow), ElementsAre(1.0F, two_up, one_up, -3.0F, 1e-3F));
  EXPECT_THAT(get<double>(*session, back),
              ElementsAre(0.5, 0.5 * two_up, 0.5 * one_up, -1.5, 0.5 * 1e-3F));
  EXPECT_THAT(get<float>(*session, third), ElementsAre(static_cast<float>(10.0 / 3)));
}

INSTANTIATE_TEST_SUITE_P(Executors, Elementwise, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
