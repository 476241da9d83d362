// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// What the benchmarks of multiplications, of overlap and of what a calibration needs plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "program/check.hpp"
#include "program/facts.hpp"
#include "workloads/calibrate/calibrate.hpp"
#include "workloads/gemm/gemm.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/overlap/overlap.hpp"

namespace isoscale::workloads {
namespace {

using program::DType;
using testing::HasSubstr;

Request request_on(int ranks, Options options) {
  Request request;
  request.model = load_model("tiny");
  request.mesh.dp = ranks;
  request.options = std::move(options);
  return request;
}

std::string refusal(const Request& request) {
  try {
    static_cast<void>(gemm::shapes_of(request));
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Shapes, AreListsAndFamilies) {
  const auto shapes =
      gemm::shapes_of(request_on(1, {{"shapes", "powers,64x32x16,8x8x8x4"}, {"largest", "512"}}));
  ASSERT_EQ(shapes.size(), 5U);  // 128, 256, 512 and the two of the list
  EXPECT_EQ(shapes[2].m, 512U);
  EXPECT_EQ(shapes[3].flop(), 2.0 * 64 * 32 * 16);
  EXPECT_EQ(shapes[3].bytes(), (64U * 16 + 16 * 32 + 64 * 32) * 4);
  EXPECT_EQ(shapes[4].batch, 4U);
  EXPECT_EQ(shapes[4].origin, "list");
}

TEST(Shapes, OfAModelAreThoseOfItsTrainingStep) {
  Request request = request_on(1, {{"shapes", "model"}, {"microbatch", "2"}});
  request.mesh = {.tp = 2};
  std::set<std::array<std::uint32_t, 4>> planned, played;
  for (const gemm::Shape& shape : gemm::shapes_of(request)) {
    planned.insert({shape.m, shape.n, shape.k, shape.batch});
  }
  Request training = request;
  training.options = {{"microbatch", "2"}, {"microbatches", "1"}, {"batch", "2"}};
  for (const auto& program : hybrid::build(training).programs) {
    for (const program::Op& op : program.step().ops) {
      if (const auto* one = std::get_if<program::Gemm>(&op.payload)) {
        played.insert({one->m, one->n, one->k, one->batch});
      }
    }
  }
  EXPECT_EQ(planned, played);
  EXPECT_GT(planned.size(), 5U);
}

TEST(Shapes, WithoutMeaningAreRefused) {
  for (const char* const text :
       {"64x64", "64x64x64x2x2", "0x1x1", "ax1x1", "1x1x1x", "4097", "1x1x"}) {
    EXPECT_THAT(refusal(request_on(1, {{"shapes", text}})), HasSubstr("MxNxK")) << text;
  }
  Request narrow = request_on(1, {{"shapes", "24x16x16"}});
  narrow.precision = Precision::fp8;
  EXPECT_THAT(refusal(narrow), HasSubstr("multiples of 16"));
  Request divided = request_on(1, {{"shapes", "model"}});
  divided.mesh.tp = 3;
  EXPECT_NE(refusal(divided), "accepted");
}

TEST(Shapes, OfFp8AreE4m3WithBothOperandsAlongK) {
  Request request = request_on(1, {{"shapes", "64x32x16"}});
  request.precision = Precision::fp8;
  const auto shape = gemm::shapes_of(request).front();
  EXPECT_EQ(shape.a, DType::e4m3);
  EXPECT_EQ(shape.d, DType::bf16);
  EXPECT_EQ(shape.transpose_a, program::Transpose::no);
  EXPECT_EQ(shape.transpose_b, program::Transpose::yes);
}

TEST(Gemm, ColdMultiplicationsGoThroughAllThatRotates) {
  const Request request =
      request_on(2, {{"shapes", "128x128x128"}, {"rotate", "1MiB"}, {"cache", "both"}});
  const Bench bench = gemm::build(request, 0);
  EXPECT_NO_THROW(program::check(bench.set));
  ASSERT_EQ(bench.rows.size(), 2U);
  EXPECT_EQ(bench.rows[0].text.at("cache"), "cold");
  const auto& cold = bench.set.of(0).section(bench.cases[0].section).ops;
  std::set<std::uint64_t> places;
  for (const program::Op& op : cold)
    places.insert(std::get<program::Gemm>(op.payload).a.slice.offset);
  EXPECT_EQ(places.size(), cold.size());                  // never the same matrices
  EXPECT_GE(cold.size() * 3 * 128 * 128 * 4, 1U << 20U);  // as much memory as asked for
  EXPECT_EQ(bench.set.of(0).section(bench.cases[1].section).ops.size(), 1U);
}

TEST(Gemm, RowsSayWhatTheProgramsCompute) {
  const Bench bench = gemm::build(request_on(1, {{"shapes", "32x16x8x2,16x16x16"}}), 0);
  for (const Case& one : bench.cases) {
    const auto outline = program::outline(bench.set.of(0), one.section, bench.set.mesh);
    EXPECT_EQ(outline.ops.size(), one.calls);
    EXPECT_EQ(outline.ops.front().flop, bench.rows[one.row_begin].number.at("flop"));
  }
}

TEST(Overlap, PlaysEachAloneAndBothOnTwoStreams) {
  for (const char* const op : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}) {
    const Request request = request_on(4, {{"shapes", "64x64x64"}, {"sizes", "4KiB"}, {"op", op}});
    const Bench bench = overlap::build(request, 0);
    EXPECT_NO_THROW(program::check(bench.set)) << op;
    ASSERT_EQ(bench.cases.size(), 3U);
    ASSERT_EQ(bench.rows.size(), 7U);
    const auto& together = bench.set.of(0).section(bench.cases[2].section).ops;
    ASSERT_EQ(together.size(), 2U);
    EXPECT_NE(together[0].stream, together[1].stream);
    EXPECT_EQ(together[0].wait_count + together[1].wait_count, 0);  // nothing orders them
    const auto outline = program::outline(bench.set.of(0), bench.cases[1].section, request.mesh);
    EXPECT_EQ(static_cast<double>(outline.ops.front().bytes), bench.rows[2].number.at("bytes"));
  }
}

/// The collective is of all ranks, in the order of their places in the group of all axes.
TEST(Overlap, ExpectsPartsByThePlaceInTheGroupOnMeshesOfSeveralAxes) {
  for (const mesh::Shape& shape : {mesh::Shape{.tp = 2, .dp = 2}, mesh::Shape{.tp = 2, .pp = 3},
                                   mesh::Shape{.tp = 2, .cp = 2, .dp = 2}}) {
    Request request =
        request_on(shape.size(), {{"shapes", "64x64x64"}, {"sizes", "4800"}, {"op", "all_to_all"}});
    request.mesh = shape;
    const std::uint64_t part = 4800 / 4 / static_cast<std::uint64_t>(shape.size());
    for (int rank = 0; rank < shape.size(); ++rank) {
      const auto place =
          static_cast<std::uint64_t>(mesh::group_index(shape, rank, mesh::every_axis));
      const std::vector<int> members = mesh::group_members(shape, rank, mesh::every_axis);
      const std::vector<Expectation> parts = overlap::expect(request, 0, 1, rank);
      ASSERT_EQ(parts.size(), members.size());
      for (std::size_t other = 0; other < parts.size(); ++other) {
        EXPECT_EQ(parts[other].slice.offset, other * part);
        EXPECT_EQ(parts[other].slice.count, part);
        EXPECT_THAT(parts[other].sources, testing::ElementsAre(members[other]));
        EXPECT_EQ(parts[other].first, place * part);
      }
      request.options["op"] = "reduce_scatter";
      EXPECT_EQ(overlap::expect(request, 0, 1, rank).at(0).first, place * part);
      request.options["op"] = "all_to_all";
    }
  }
}

TEST(Calibrate, HasMultiplicationsAndWhatTrainingCommunicates) {
  const BenchHooks hooks = calibrate::hooks();
  EXPECT_EQ(hooks.batches(request_on(1, {})), 1);
  const Request request = request_on(4, {});
  ASSERT_EQ(hooks.batches(request), 3);
  std::map<std::string, std::set<std::string>> places;  // in place or not, of each operation
  for (int batch = 0; batch < 3; ++batch) {
    const Bench bench = hooks.build(request, batch);
    EXPECT_NO_THROW(program::check(bench.set));
    for (const RowSpec& row : bench.rows) {
      const auto place = row.text.find("in_place");
      places[row.text.at("op")].insert(place == row.text.end() ? "" : place->second);
    }
  }
  using testing::ElementsAre, testing::Pair;
  EXPECT_THAT(
      places,
      ElementsAre(Pair("all_gather", ElementsAre("no")), Pair("all_reduce", ElementsAre("yes")),
                  Pair("gemm", ElementsAre("")), Pair("reduce_scatter", ElementsAre("no")),
                  Pair("sendrecv", ElementsAre("no"))));
}

}  // namespace
}  // namespace isoscale::workloads
