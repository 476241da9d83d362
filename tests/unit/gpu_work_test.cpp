// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "runner/plan/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/command_line.hpp"
#include "machine/gpu_choice.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;
using testing::HasSubstr;

settings::RunConfig asked(std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"isoscale", "run"});
  return std::get<settings::RunConfig>(config::parse_arguments(options, workloads::registry()));
}

/// GPUs on one node, of so much memory (0: unknown) and such a compute capability.
Site gpus(int ranks, std::uint64_t mebibytes, int capability) {
  Site site{.ranks = ranks,
            .node_of_rank = std::vector<int>(static_cast<std::size_t>(ranks), 0),
            .precisions = machine::precisions_of(capability / 10, capability % 10),
            .device = "cuda",
            .memory_free = {},
            .memory_pool = executor::MemoryPool::rank,
            .half_precision_rate = half_precision_rate(capability)};
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
    const auto [config, line] = with_gpu_work(asked(), gpus(is.ranks, is.mebibytes, is.capability));
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
    // What was taken is recorded as if the user had named it.
    EXPECT_EQ(settings::from_toml(settings::to_toml(config), "echo"), config);
  }
}

TEST(GpuWork, IsF16WhereGpusLackBf16) {
  EXPECT_THAT(with_gpu_work(asked(), gpus(1, 16'000, 70)).second, HasSubstr(" in f16"));
}

TEST(GpuWork, IsNotChosenOnTheHostNorAgainstTheUser) {
  Site host = gpus(1, 81'559, 0);
  host.device = "host";
  EXPECT_EQ(with_gpu_work(asked(), host).second, "");
  EXPECT_EQ(with_gpu_work(asked(), host).first.experiments[0].base.model.name, "tiny");
  const Site site = gpus(1, 81'559, 90);
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--model", "tiny"},
                                                  {"--dtype", "f16"},
                                                  {"--set", "bucket=1MiB"},
                                                  {"--suite", "standard"},
                                                  {"--workload", "dp"}}) {
    EXPECT_EQ(with_gpu_work(asked(options), site).second, "") << options[0];
  }
  EXPECT_NE(with_gpu_work(asked({"--suite", "quick", "--max-time", "1s"}), site).second, "");
  EXPECT_NE(with_gpu_work(asked({"--set", "largest=512"}), site).second, "");  // of no step
}

}  // namespace
}  // namespace isoscale::runner
