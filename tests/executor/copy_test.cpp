// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Copies between layouts and between memories, and advice about memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::Copy;
using program::Slice;

class Copies : public EachExecutor {};

struct Strides {
  std::uint64_t row, batch;
};

/// Copies 3 x 4 x 5 between two layouts; the rest of the destination must stay.
TEST_P(Copies, CopiesBetweenAllLayouts) {
  const std::vector<Strides> layouts{
      {.row = 5, .batch = 20},   // dense
      {.row = 7, .batch = 28},   // padded rows
      {.row = 5, .batch = 31},   // dense matrices apart
      {.row = 15, .batch = 5},   // interleaved
      {.row = 8, .batch = 101},  // all apart
  };
  const auto values = random_values<double>(256, 5), before = random_values<double>(256, 6);
  for (const Strides from : layouts) {
    for (const Strides to : layouts) {
      Sketch sketch;
      const Slice src = sketch.buffer(program::DType::f64, 256, program::Space::pinned);
      const Slice dst = sketch.buffer<double>(256);
      sketch.emit(Copy{.rows = 4,
                       .columns = 5,
                       .batch = 3,
                       .src = {.slice = src, .row_stride = from.row, .batch_stride = from.batch},
                       .dst = {.slice = dst, .row_stride = to.row, .batch_stride = to.batch}});
      const auto session = played(sketch, with(src, values), with(dst, before));
      auto expected = before;
      for (std::uint64_t i = 0; i < 3 * 4 * 5; ++i) {
        const std::uint64_t b = i / 20, r = i / 5 % 4, c = i % 5;
        expected[b * to.batch + r * to.row + c] = values[b * from.batch + r * from.row + c];
      }
      EXPECT_EQ(get<double>(*session, dst), expected)
          << from.row << "," << from.batch << " to " << to.row << "," << to.batch;
    }
  }
}

TEST_P(Copies, CopiesBetweenAllMemories) {
  using program::Space;
  constexpr std::uint64_t elements = 1'000;
  const auto values = random_values<double>(elements, 9);
  for (const Space from : {Space::device, Space::pinned, Space::pageable, Space::managed}) {
    for (const Space to : {Space::device, Space::pinned, Space::pageable, Space::managed}) {
      Sketch sketch;
      const Slice src = sketch.buffer(program::DType::f64, elements, from);
      const Slice dst = sketch.buffer(program::DType::f64, elements, to);
      sketch.emit(Copy{.rows = 1,
                       .columns = elements,
                       .src = Sketch::dense(src, elements),
                       .dst = Sketch::dense(dst, elements)});
      EXPECT_EQ(get<double>(*played(sketch, with(src, values)), dst), values)
          << program::name(from) << " to " << program::name(to);
    }
  }
}

TEST_P(Copies, AdviceChangesNoElement) {
  Sketch sketch;
  const Slice managed = sketch.buffer(program::DType::f64, 64, program::Space::managed);
  for (const auto advice : {program::Advice::prefer_device, program::Advice::prefetch_device,
                            program::Advice::prefetch_host}) {
    sketch.emit(program::Advise{.slice = managed, .advice = advice});
  }
  const auto values = random_values<double>(64, 9);
  const auto session = played(sketch, with(managed, values));
  session->play(program::Section::step, Trace::on);
  EXPECT_EQ(get<double>(*session, managed), values);
}

TEST_P(Copies, CopiesOneMatrixToAWholeBatch) {
  Sketch sketch;
  const Slice src = sketch.buffer<std::int32_t>(2), dst = sketch.buffer<std::int32_t>(6);
  sketch.emit(Copy{.rows = 1,
                   .columns = 2,
                   .batch = 3,
                   .src = Sketch::dense(src, 2),
                   .dst = {.slice = dst, .row_stride = 2, .batch_stride = 2}});
  EXPECT_THAT(get<std::int32_t>(*played(sketch, with<std::int32_t>(src, {4, 9})), dst),
              testing::ElementsAre(4, 9, 4, 9, 4, 9));
}

TEST_P(Copies, CopyFromAShardPicksThisRanksPart) {
  Sketch sketch;
  const Slice all = sketch.buffer<double>(8), part = sketch.buffer<double>(2);
  // Coordinate 0 on a mesh of one: the slice begins at its offset.
  const Slice mine{
      .buffer = all.buffer, .axis = mesh::Axis::dp, .offset = 4, .count = 2, .step = 2};
  sketch.emit(
      Copy{.rows = 1, .columns = 2, .src = Sketch::dense(mine, 2), .dst = Sketch::dense(part, 2)});
  EXPECT_THAT(get<double>(*played(sketch, with<double>(all, {0, 1, 2, 3, 4, 5, 6, 7})), part),
              testing::ElementsAre(4, 5));
}

INSTANTIATE_TEST_SUITE_P(Executors, Copies, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
