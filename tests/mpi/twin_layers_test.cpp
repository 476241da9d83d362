// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Elementwise work and recomputation: every mesh computes what one rank does that keeps all.
#include <gtest/gtest.h>

#include "program/check.hpp"
#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;

struct Way {
  const char *elementwise, *recompute;
};

constexpr std::array ways{Way{"on", "none"}, Way{"on", "selective"}, Way{"on", "full"},
                          Way{"off", "selective"}, Way{"off", "full"}};

void set_way(TwinCase& point, const Way& way) {
  point.request.options["elementwise"] = way.elementwise;
  point.request.options["recompute"] = way.recompute;
  point.name += fmt::format(" elementwise={} recompute={}", way.elementwise, way.recompute);
}

TEST(LayerTwin, OfEveryMeshEqualsOneRank) {
  const Ranks ranks;
  const auto models = twin_models();
  const auto runs = covering_levels();
  std::size_t turn = 0;
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    for (const Way& way : ways) {
      std::size_t cases = 0;
      while (cases < 2) {  // the next models that this mesh divides, with the next levels
        const std::size_t now = turn++;
        auto points = twin_case(mesh, models[now % models.size()], runs[now % runs.size()]);
        if (points.empty()) continue;
        set_way(points.front(), way);
        expect_equal_to_one_rank(ranks, points.front());
        ++cases;
      }
    }
  }
}

/// How ranks share a layer's rows, and schedules that put work off: beside all of these.
std::vector<workloads::Options> sharings() {
  return {{{"sequence_parallel", "on"}},
          {{"sequence_parallel", "on"}, {"chunks", "2"}, {"vocabulary", "on"}},
          {{"sequence_parallel", "on"}, {"ring", "on"}, {"schedule", "zb-h1"}},
          {{"chunks", "2"}, {"optimizer", "adam"}},
          {{"schedule", "zb-h1"}, {"vocabulary", "on"}},
          {{"schedule", "zb-h1"}, {"tp_output", "gather"}},
          {{"schedule", "interleaved"}, {"v", "2"}, {"handover", "scattered"}}};
}

TEST(LayerTwin, BesideEveryWayToShareALayer) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  std::size_t turn = 0;
  for (const mesh::Shape& mesh : meshes_with_cp(ranks.world.size())) {
    for (const workloads::Options& options : sharings()) {
      ++turn;
      workloads::Request base{.model = gated_model(), .options = options};
      base.model.gated_mlp = turn % 2 == 0;
      base.model.layers = 4 * mesh.pp;
      base.precision = turn % 4 == 0 ? Precision::f32 : Precision::f64;
      base.options["microbatch"] = "2";
      base.options["microbatches"] = std::to_string(2 * mesh.pp * mesh.dp);
      const auto scaling = workloads::Scaling::strong;
      if (mesh::violation(mesh, hybrid.limits(base, scaling))) continue;
      TwinCase point{.name = mesh::to_string(mesh),
                     .request = hybrid.scale(base, mesh, scaling),
                     .streams = turn % 3 == 0 ? executor::HostStreams::threads
                                              : executor::HostStreams::folded};
      for (const auto& [key, value] : options) point.name += fmt::format(" {}={}", key, value);
      set_way(point, ways[turn % ways.size()]);
      expect_equal_to_one_rank(ranks, point);
    }
  }
  EXPECT_GE(turn, 7U);
}

TEST(LayerTwin, IsNotThatOfTheStackWithoutElementwiseWork) {
  // The comparison would see it: with the option against a reference without, all differs.
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const mesh::Shape mesh{.dp = ranks.world.size()};
  for (TwinCase& point : twin_case(mesh, gated_model(), 0)) {
    workloads::Request twin = hybrid.twin(point.request);
    twin.options["elementwise"] = "on";
    const program::ProgramSet set = hybrid.build(twin);
    twin.options["elementwise"] = "off";
    EXPECT_FALSE(verify_programs(set, hybrid, twin, *ranks.folded, ranks.world).ok);
  }
}

class NarrowLayerTwin : public testing::TestWithParam<Precision> {};

TEST_P(NarrowLayerTwin, OfEveryMeshEqualsOneRankInF64) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const auto models = twin_models();
  const auto runs = covering_levels();
  std::size_t turn = 0;
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    for (std::size_t cases = 0; cases < 2;) {
      const std::size_t now = turn++;
      auto points = twin_case(mesh, models[now % models.size()], runs[now % runs.size()]);
      if (points.empty()) continue;
      TwinCase& point = points.front();
      set_way(point, ways[now % ways.size()]);
      point.request.precision = GetParam();
      const Verdict verdict = verify_twin(hybrid, point.request, *ranks.emulating, ranks.world);
      EXPECT_TRUE(verdict.ok) << point.name << ": " << verdict.detail;
      EXPECT_GT(verdict.difference.value_or(0), tolerance(GetParam()) / 100) << point.name;
      ++cases;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, NarrowLayerTwin,
                         testing::Values(Precision::bf16, Precision::fp8),
                         [](const auto& precision) {
                           return std::string{program::name(precision.param)};
                         });

}  // namespace
}  // namespace isoscale::runner
