// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The programs of every precision compute what one rank computes in f64, the narrow ones emulated.
#include <gtest/gtest.h>

#include "program/low_precision.hpp"
#include "tests/executor/sketch.hpp"
#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;

class NarrowTwin : public testing::TestWithParam<Precision> {};

TEST_P(NarrowTwin, OfEveryMeshEqualsOneRankInF64) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const auto models = twin_models();
  const auto runs = covering_levels();
  std::size_t turn = 0;
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    int cases = 0;
    while (cases < 2) {  // each mesh with two sets of levels, in turn, and a model that it divides
      const std::size_t now = turn++;
      auto points = twin_case(mesh, models[now % models.size()], runs[now % runs.size()]);
      if (points.empty()) continue;
      TwinCase& point = points.front();
      point.request.precision = GetParam();
      const Verdict verdict = verify_twin(hybrid, point.request, *ranks.emulating, ranks.world);
      EXPECT_TRUE(verdict.ok) << point.name << ": " << verdict.detail;
      // Nothing is vacuous: narrow types do round.
      EXPECT_GT(verdict.difference.value_or(0), tolerance(GetParam()) / 100) << point.name;
      ++cases;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, NarrowTwin,
                         testing::Values(Precision::tf32, Precision::f16, Precision::bf16,
                                         Precision::fp8),
                         [](const auto& precision) {
                           return std::string{program::name(precision.param)};
                         });

TEST(Host, ReducesNarrowTypesAsTheirValues) {
  const Ranks ranks;
  const int size = ranks.world.size();
  for (const program::DType type : {program::DType::f16, program::DType::bf16}) {
    const program::NarrowFormat format = *program::narrow_format(type);
    executor::Sketch sketch;
    std::vector<program::Slice> results;
    const program::Slice data = sketch.buffer(type, 2);
    using program::Reduction;
    for (const Reduction reduction : {Reduction::sum, Reduction::min, Reduction::max}) {
      results.push_back(sketch.buffer(type, 2));
      sketch.emit(program::Collective{
          .reduction = reduction, .axes = mesh::Axis::dp, .send = data, .receive = results.back()});
    }
    const auto session = ranks.emulating->prepare(sketch.on({.dp = size}), ranks.world);
    const double mine = ranks.world.rank() - 1.5;
    executor::put<std::uint16_t>(*session, data, {encode(format, mine), encode(format, 2 * mine)});
    session->play(program::Section::step, executor::Trace::off);
    const double sum = size * (size - 1) / 2.0 - 1.5 * size;
    const std::array expected{sum, -1.5, size - 2.5};
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto values = executor::get<std::uint16_t>(*session, results[i]);
      EXPECT_EQ(static_cast<double>(decode(format, values[0])), expected[i]);
      EXPECT_EQ(static_cast<double>(decode(format, values[1])), 2 * expected[i]);
    }
  }
}

TEST(Host, RefusesToComputeInNarrowTypes) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const mesh::Shape mesh{.dp = ranks.world.size()};
  for (TwinCase& point : twin_case(mesh, gated_model(), 0)) {
    point.request.precision = Precision::bf16;
    const Verdict verdict = verify_twin(hybrid, point.request, *ranks.folded, ranks.world);
    EXPECT_FALSE(verdict.ok);
    EXPECT_NE(verdict.detail.find("f32 and f64 only"), std::string::npos) << verdict.detail;
  }
  EXPECT_EQ(ranks.folded->describe().precisions.size(), 2U);
  EXPECT_EQ(ranks.emulating->describe().precisions.size(), 6U);
}

}  // namespace
}  // namespace isoscale::runner
