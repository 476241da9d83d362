// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/command_line.hpp"
#include "runner/plan/plan.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;

/// GPUs whose memory nobody has looked at, eight to a node.
Site gpus(int ranks) {
  Site site{.ranks = ranks,
            .node_of_rank = {},
            .precisions = {Precision::f64, Precision::f32, Precision::bf16},
            .device = "cuda",
            .memory_free = {},
            .memory_pool = executor::MemoryPool::rank};
  for (int rank = 0; rank < ranks; ++rank) site.node_of_rank.push_back(rank / 8);
  return site;
}

settings::RunConfig suite(const std::string& name) {
  const std::vector<std::string> arguments{"isoscale", "run", "--suite", name, "--device", "cuda"};
  return std::get<settings::RunConfig>(config::parse_arguments(arguments, workloads::registry()));
}

/// The plan of all counts up to the world.
Plan plan_of(const settings::RunConfig& config, int ranks) {
  return make_plan(config, gpus(ranks));
}

/// On GPUs of 80 GB (79.6 GiB), eight to a node, refuses what makes no sense: more memory than one
/// has, less what libraries reserve; tp over more than two nodes; other meshes than dp's along a
/// hybrid curve.
void expect_sensible(const std::string& name, int ranks) {
  const settings::RunConfig config = suite(name);
  int measured = 0;
  for (const PlannedPoint& point : plan_of(config, ranks).points) {
    if (!point.skip_reason.empty()) continue;
    const std::string what = fmt::format("{} point {}: {} on {}", name, point.index + 1,
                                         point.workload->name, point.ranks);
    const mesh::Shape& mesh = point.request.mesh;
    ++measured;
    EXPECT_LT(*point.memory_per_rank, units::Bytes{80'000'000'000}) << what;
    if (name != "quick") {
      EXPECT_LE(mesh.tp, 16) << what;
      EXPECT_LE(mesh.pp, 8) << what;
    }
    if (point.workload->name != "hybrid") continue;
    if (name == "quick" && ranks < 8) continue;
    EXPECT_EQ(mesh, (mesh::Shape{.tp = 2, .dp = point.ranks / 4, .pp = 2})) << what;
  }
  EXPECT_GT(measured, 0) << name;
}

TEST(Suites, PlanWhatMakesSense) {
  for (const char* const name : {"quick", "standard", "acceptance"}) {
    for (const int ranks : {1, 8, 64, 512}) expect_sensible(name, ranks);
  }
}

TEST(Suites, SkipWhatACurveCannotHold) {
  std::vector<std::string> skipped;
  const settings::RunConfig config = suite("standard");
  for (const PlannedPoint& point : plan_of(config, 8).points) {
    if (point.skip_reason.empty()) continue;
    skipped.push_back(fmt::format("{} {}", point.workload->name, point.ranks));
  }
  EXPECT_THAT(skipped, testing::ElementsAre("hybrid 1", "hybrid 2", "hybrid 1", "hybrid 2"));
}

}  // namespace
}  // namespace isoscale::runner
