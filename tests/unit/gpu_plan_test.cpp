// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/command_line.hpp"
#include "machine/gpu_choice.hpp"
#include "runner/plan/plan.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;
using testing::HasSubstr;

settings::RunConfig asked(std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"isoscale", "run"});
  return std::get<settings::RunConfig>(config::parse_arguments(options, workloads::registry()));
}

/// GPUs on one node, of so much memory (0: unknown) and such a compute capability.
plan::Site gpus(int ranks, std::uint64_t mebibytes, int capability) {
  plan::Site site{.ranks = ranks,
                  .node_of_rank = std::vector<int>(static_cast<std::size_t>(ranks), 0),
                  .precisions = machine::precisions_of(capability / 10, capability % 10),
                  .device = "cuda",
                  .memory_free = {},
                  .memory_pool = executor::MemoryPool::rank,
                  .half_precision_rate = plan::half_precision_rate(capability)};
  if (mebibytes > 0) site.memory_free = {units::Bytes{mebibytes << 20U}};
  return site;
}

TEST(GpuWork, IsTheLargestModelThatFitsAndIsQuick) {
  struct Case {
    int ranks;
    std::uint64_t mebibytes;
    int capability;
    std::string model, batch;
  };
  for (const Case& is : std::vector<Case>{{8, 81'559, 90, "gpt-1.3b", "8"},
                                          {1, 81'559, 90, "gpt-6.7b", "1"},
                                          {1, 40'000, 90, "gpt-1.3b", "8"},
                                          {8, 81'920, 80, "gpt-125m", "16"},
                                          {8, 180'000, 100, "gpt-1.3b", "8"},
                                          {1, 8'000, 86, "gpt-125m", "8"},
                                          {1, 0, 90, "gpt-125m", "64"},
                                          {64, 81'559, 90, "gpt-125m", "64"}}) {
    const auto [config, line] =
        plan::with_gpu_work(asked(), gpus(is.ranks, is.mebibytes, is.capability));
    EXPECT_FALSE(config.on_gpus);
    EXPECT_THAT(line, HasSubstr(is.model + " in bf16, batch=" + is.batch)) << line;
    for (const settings::Experiment& experiment : config.experiments) {
      EXPECT_EQ(experiment.base.model.name, is.model);
      EXPECT_EQ(experiment.base.precision, Precision::bf16);
      if (experiment.workload == "calibrate") continue;
      EXPECT_EQ(experiment.base.options.at("batch"), is.batch);
      EXPECT_EQ(experiment.base.options.at("microbatch"), "1");
      EXPECT_EQ(experiment.base.options.at("bucket"), "25MiB");
    }
    // The choice is recorded as if the user had named it.
    EXPECT_EQ(settings::from_toml(settings::to_toml(config), "echo"), config);
  }
}

TEST(GpuWork, IsF16WhereGpusLackBf16) {
  EXPECT_THAT(plan::with_gpu_work(asked(), gpus(1, 16'000, 70)).second, HasSubstr(" in f16"));
}

TEST(GpuWork, IsNotChosenOnTheHostNorAgainstTheUser) {
  plan::Site host = gpus(1, 81'559, 0);
  host.device = "host";
  EXPECT_EQ(plan::with_gpu_work(asked(), host).second, "");
  EXPECT_EQ(plan::with_gpu_work(asked(), host).first.experiments[0].base.model.name, "tiny");
  const plan::Site site = gpus(1, 81'559, 90);
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--model", "tiny"},
                                                  {"--dtype", "f16"},
                                                  {"--set", "bucket=1MiB"},
                                                  {"--suite", "standard"},
                                                  {"--workload", "dp"}}) {
    EXPECT_EQ(plan::with_gpu_work(asked(options), site).second, "") << options[0];
  }
  EXPECT_NE(plan::with_gpu_work(asked({"--suite", "quick", "--max-time", "1s"}), site).second, "");
  EXPECT_NE(plan::with_gpu_work(asked({"--set", "largest=512"}), site).second, "");  // of no step
}

/// GPUs whose memory nobody has looked at, eight to a node.
plan::Site gpus(int ranks) {
  plan::Site site{.ranks = ranks,
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
plan::Plan plan_of(const settings::RunConfig& config, int ranks) {
  return plan::make_plan(config, gpus(ranks));
}

/// On GPUs of 80 GB (79.6 GiB), eight to a node, refuses what makes no sense: more memory than one
/// has, less what libraries reserve; tp over more than two nodes; other meshes than dp's along a
/// hybrid curve.
void expect_sensible(const std::string& name, int ranks) {
  const settings::RunConfig config = suite(name);
  int measured = 0;
  for (const plan::PlannedPoint& point : plan_of(config, ranks).points) {
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
  for (const plan::PlannedPoint& point : plan_of(config, 8).points) {
    if (point.skip_reason.empty()) continue;
    skipped.push_back(fmt::format("{} {}", point.workload->name, point.ranks));
  }
  EXPECT_THAT(skipped, testing::ElementsAre("hybrid 1", "hybrid 2", "hybrid 1", "hybrid 2"));
}

}  // namespace
}  // namespace isoscale::runner
