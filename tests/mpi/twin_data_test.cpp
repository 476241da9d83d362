// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// However replicas share a batch and its gradients, they compute what one rank computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "program/check.hpp"
#include "program/facts.hpp"
#include "runner/microbench/rank_speeds.hpp"
#include "tests/mpi/twin_cases.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;
using workloads::Options;

/// Points with these options on every mesh of all ranks that has replicas, each with `runs` sets of
/// the other options' levels, in turn.
std::vector<TwinCase> cases_with(const Options& options, int ranks, std::size_t runs) {
  std::vector<TwinCase> result;
  const auto models = twin_models();
  const auto levels = covering_levels();
  std::size_t turn = 0;
  for (const mesh::Shape& mesh : meshes_of(ranks)) {
    if (mesh.dp == 1) continue;
    for (std::size_t found = 0; found < runs;) {
      const std::size_t now = turn++;
      auto points = twin_case(mesh, models[now % models.size()], levels[now % levels.size()]);
      if (points.empty()) continue;
      ++found;
      TwinCase& point = points.front();
      for (const auto& [key, value] : options) {
        point.request.options[key] = value;
        point.name += " " + key + "=" + value;
      }
      // A faster rank each time: every replica has a speed of its own.
      for (int rank = 0; rank < mesh.size(); ++rank)
        point.request.speed_of_rank.push_back(rank + 1);
      result.push_back(std::move(point));
    }
  }
  return result;
}

void expect_all_equal_to_one_rank(const Ranks& ranks, const Options& options, std::size_t runs) {
  for (const TwinCase& point : cases_with(options, ranks.world.size(), runs)) {
    expect_equal_to_one_rank(ranks, point);
  }
}

TEST(Funnel, EqualsOneRank) {
  expect_all_equal_to_one_rank(Ranks{}, {{"strategy", "funnel"}, {"overlap", "off"}}, 3);
}

TEST(Funnel, GoesWithEverySchedule) {
  const Ranks ranks;
  for (const char* schedule : {"interleaved", "zb-h1"}) {
    expect_all_equal_to_one_rank(
        ranks, {{"strategy", "funnel"}, {"overlap", "off"}, {"schedule", schedule}}, 1);
  }
}

TEST(Partition, EqualsOneRank) {
  const Ranks ranks;
  for (const char* partition : {"skewed:3", "skewed:0.3", "proportional"}) {
    expect_all_equal_to_one_rank(ranks, {{"partition", partition}}, 4);
  }
}

/// All is sent, so that nothing is lost: that the largest are chosen is tested with the op itself.
TEST(Compression, OfEverythingEqualsOneRank) {
  const Ranks ranks;
  expect_all_equal_to_one_rank(ranks, {{"compression", "topk"}, {"compression_ratio", "1"}}, 3);
}

TEST(Partition, GoesWithEverySchedule) {
  const Ranks ranks;
  for (const char* schedule : {"interleaved", "zb-h1"}) {
    expect_all_equal_to_one_rank(ranks, {{"partition", "skewed:3"}, {"schedule", schedule}}, 1);
  }
}

TEST(Partition, OfTwinsIsUneven) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  for (const char* partition : {"skewed:3", "proportional"}) {
    for (const TwinCase& point : cases_with({{"partition", partition}}, 8, 1)) {
      const workloads::Request twin = hybrid.twin(point.request);
      const auto microbatches = workloads::stack::distribution_of(twin).microbatches;
      EXPECT_GT(std::set<int>(microbatches.begin(), microbatches.end()).size(), 1U) << point.name;
    }
  }
}

/// Gradients that travel in a narrow type: within its tolerance, and not as if they were wide.
TEST(GradDtype, EqualsOneRankWithinTheNarrowType) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  for (const char* type : {"bf16", "f16"}) {
    for (const TwinCase& point : cases_with({{"grad_dtype", type}}, ranks.world.size(), 3)) {
      const Verdict verdict =
          verify_twin(hybrid, point.request, ranks.executor(point.streams), ranks.world);
      EXPECT_TRUE(verdict.ok) << point.name << ": " << verdict.detail;
      EXPECT_GT(verdict.difference.value_or(0), 1e-5) << point.name;
    }
  }
}

/// What a proportional deal is made from: the largest product of any stage, the same for all.
TEST(Speeds, AreOfTheLargestMultiplicationAndTheSameOnAllRanks) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const mesh::Shape mesh{.dp = ranks.world.size()};
  workloads::Request base{
      .model = gated_model(),
      .options = {{"partition", "proportional"}, {"microbatch", "1"}, {"microbatches", "2"}}};
  const workloads::Request request = hybrid.scale(base, mesh, workloads::Scaling::weak);
  EXPECT_TRUE(partitions_by_speed(request));
  EXPECT_FALSE(partitions_by_speed(hybrid.scale(base, {}, workloads::Scaling::weak)));
  const program::ProgramSet one = largest_multiplication(hybrid.build(request));
  ASSERT_EQ(one.programs.size(), 1U);
  // Queries, keys and values: 32 tokens x 96 x (24 + 2 x 12 heads of 16).
  EXPECT_EQ(program::facts(one.programs[0], mesh).flop.value(), 2.0 * 32 * 96 * (24 + 2 * 12) * 16);
  const std::vector<double> speeds = measure_speeds(one, *ranks.folded, ranks.world, {});
  ASSERT_EQ(speeds.size(), static_cast<std::size_t>(mesh.dp));
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    EXPECT_GT(speeds[rank], 0);
    EXPECT_EQ(ranks.world.all_max(speeds[rank]), ranks.world.all_min(speeds[rank]));
  }
}

/// Meshes that nobody here has the ranks for.
TEST(Data, IsFreeOfDeadlockOn64Ranks) {
  const Ranks ranks;
  if (ranks.world.rank() != 0) return;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  for (const mesh::Shape& mesh :
       {mesh::Shape{.dp = 64}, mesh::Shape{.tp = 4, .dp = 8, .pp = 2},
        mesh::Shape{.tp = 2, .dp = 4, .pp = 8}, mesh::Shape{.dp = 16, .pp = 4}}) {
    for (const Options& options :
         {Options{{"strategy", "funnel"}, {"input", "pinned"}}, Options{{"partition", "skewed:4"}},
          Options{{"partition", "proportional"}, {"schedule", "gpipe"}},
          Options{{"grad_dtype", "bf16"}}, Options{{"compression", "topk"}}}) {
      workloads::Request base{.model = workloads::load_model("tiny"), .options = options};
      base.model.layers = 8;
      base.options["microbatch"] = "1";
      base.options["microbatches"] = "8";
      workloads::Request request = hybrid.scale(base, mesh, workloads::Scaling::weak);
      for (int rank = 0; rank < mesh.size(); ++rank) {
        request.speed_of_rank.push_back(1 + rank % 5);
      }
      EXPECT_NO_THROW(program::check(hybrid.build(request))) << mesh::to_string(mesh);
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
