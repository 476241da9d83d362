// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/report.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "program/facts.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::analysis {
namespace {

/// What a run writes of a point, of two stages with the output projection on the last.
results::PointData point_with(const char* recompute, const char* schedule) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const mesh::Shape mesh{.tp = 2, .pp = 2};
  workloads::Request base{.model = workloads::load_model("tiny"),
                          .options = {{"microbatch", "2"},
                                      {"microbatches", "4"},
                                      {"vocabulary", "on"},
                                      {"schedule", schedule},
                                      {"recompute", recompute}}};
  const workloads::Request request = hybrid.scale(base, mesh, workloads::Scaling::weak);
  const program::ProgramSet set = hybrid.build(request);
  results::PointData point;
  point.mesh = mesh;
  point.ranks = mesh.size();
  point.options.insert(request.options.begin(), request.options.end());
  for (int rank = 0; rank < mesh.size(); ++rank) {
    point.flop_of_rank.push_back(program::facts(set.of(rank), mesh).flop.value());
  }
  point.outline = program::outline(set, program::Section::step);
  return point;
}

double all_flop(const results::PointData& point) {
  return std::reduce(point.flop_of_rank.begin(), point.flop_of_rank.end());
}

TEST(ModelFlop, LeavesOutWhatIsComputedAgain) {
  for (const char* schedule : {"1f1b", "zb-h1"}) {
    const results::PointData none = point_with("none", schedule);
    EXPECT_EQ(model_flop_per_step(none), all_flop(none));
    for (const char* recompute : {"selective", "full"}) {
      const results::PointData point = point_with(recompute, schedule);
      EXPECT_GT(all_flop(point), 1.001 * all_flop(none)) << recompute;
      EXPECT_DOUBLE_EQ(model_flop_per_step(point).value_or(0), all_flop(none)) << recompute;
    }
  }
}

TEST(ModelFlop, IsNotKnownOfARecomputingStepWithoutItsOps) {
  results::PointData point = point_with("full", "1f1b");
  point.outline = {};
  EXPECT_FALSE(model_flop_per_step(point));
  point.options.erase("recompute");
  EXPECT_EQ(model_flop_per_step(point), all_flop(point));
  point.flop_of_rank.clear();
  EXPECT_FALSE(model_flop_per_step(point));
}

}  // namespace
}  // namespace isoscale::analysis
