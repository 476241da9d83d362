// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "made_outlines.hpp"
#include "program/builder.hpp"
#include "simulate/classes.hpp"

namespace isoscale::simulate {
namespace {

using program::OpKind;

constexpr auto dp = mesh::Axis::dp;

ClassStep play(const std::vector<MadeOp>& ops, const Overlap& overlap) {
  const AllAlike ranks = all_alike({.dp = 4}, ops);
  return play_classes(ranks.classes, ranks.costs, overlap, Record::spans);
}

double length(const ClassStep& step, std::size_t op) {
  const timeline::Span& span = step.timeline.ranks.at(0).spans.at(op);
  return static_cast<double>((span.end - span.start).value());
}

// A GEMM of 1000 beside an all-reduce of 600, from the same instant. All of the reduction is beside
// it: at half speed it takes 1200. For those the GEMM does 1200 / 1.5 = 800 of its work, and 200
// are left: 1400.
TEST(Overlap, OpsBesideTheOtherKindTakeTheirShareLonger) {
  const ClassStep step =
      play({{.nanoseconds = 1000},
            {.kind = OpKind::all_reduce, .stream = 1, .nanoseconds = 600, .axes = dp}},
           {.compute = 1.5, .communication = 2});
  EXPECT_NEAR(length(step, 0), 1400, 2);
  EXPECT_NEAR(length(step, 1), 1200, 2);
  EXPECT_NEAR(step.seconds, 1400e-9, 2e-9);
  EXPECT_LT(step.error, 1e-3);
}

// Nothing runs beside it: the reduction waits for the GEMM, and the second GEMM for the reduction.
TEST(Overlap, OpsAloneTakeTheirTime) {
  const ClassStep step = play({{.nanoseconds = 1000},
                               {.kind = OpKind::all_reduce,
                                .stream = 1,
                                .nanoseconds = 600,
                                .axes = dp,
                                .waits = {{.stream = 0, .count = 1}}},
                               {.nanoseconds = 500, .waits = {{.stream = 1, .count = 1}}}},
                              {.compute = 1.5, .communication = 2});
  EXPECT_DOUBLE_EQ(step.seconds, 2100e-9);
  EXPECT_EQ(step.error, 0);
}

// Copies are neither kind.
TEST(Overlap, CopiesStretchNothing) {
  const ClassStep step =
      play({{.nanoseconds = 1000}, {.kind = OpKind::copy, .stream = 1, .nanoseconds = 600}},
           {.compute = 1.5, .communication = 2});
  EXPECT_DOUBLE_EQ(step.seconds, 1000e-9);
}

// Only the second half of the GEMM has the reduction beside it, which outlasts it: of the GEMM's
// 500 left, at 2/3 speed: 750. The reduction has then done 375 of its 600, and ends 225 later.
TEST(Overlap, CountsOnlyTheTimeBeside) {
  const ClassStep step = play({{.nanoseconds = 500},
                               {.nanoseconds = 500},
                               {.kind = OpKind::all_reduce,
                                .stream = 1,
                                .nanoseconds = 600,
                                .axes = dp,
                                .waits = {{.stream = 0, .count = 1}}}},
                              {.compute = 1.5, .communication = 2});
  EXPECT_NEAR(length(step, 0), 500, 2);
  EXPECT_NEAR(length(step, 1), 750, 3);
  EXPECT_NEAR(length(step, 2), 975, 3);
  EXPECT_NEAR(step.seconds, 1475e-9, 4e-9);
}

/// A rank whose step is one fill.
program::RankProgram filling(const mesh::Shape& mesh, std::uint64_t elements) {
  program::Builder builder{mesh};
  builder.begin(program::Section::setup);
  builder.begin(program::Section::step);
  const program::BufferId buffer =
      builder.allocate({.dtype = program::DType::f32, .count = elements});
  builder.emit(0, program::Fill{.dst = builder.whole(buffer)});
  return builder.finish();
}

// Of twelve ranks along dp every third differs: two coordinates are enough, and without messages
// along dp they are kept.
TEST(Classes, KeepOneCoordinateOfThoseThatAreAlike) {
  const mesh::Shape mesh{.tp = 2, .dp = 12};
  program::ProgramSet set{
      .mesh = mesh, .programs = {filling(mesh, 8), filling(mesh, 16)}, .program_of_rank = {}};
  for (int rank = 0; rank < mesh.size(); ++rank) {
    set.program_of_rank.push_back(mesh::coordinates(mesh, rank).dp % 3 == 2 ? 1 : 0);
  }
  const Classes classes = classes_of(set, program::Section::step);
  EXPECT_EQ(classes.kept, mesh::AxisSet{dp});
  EXPECT_EQ(classes.outline.mesh, (mesh::Shape{.dp = 2}));
  EXPECT_EQ(classes.program, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(classes.rank, (std::vector<int>{0, 4}));
  for (int rank = 0; rank < mesh.size(); ++rank) {
    EXPECT_EQ(classes.class_of_rank[static_cast<std::size_t>(rank)],
              set.program_of_rank[static_cast<std::size_t>(rank)]);
  }
}

}  // namespace
}  // namespace isoscale::simulate
