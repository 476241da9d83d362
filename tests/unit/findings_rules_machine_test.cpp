// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bench_samples.hpp"
#include "findings_samples.hpp"
#include "preflight/check.hpp"

namespace isoscale::analysis {
namespace {

using samples::evidence;
using samples::find;
using samples::finding;
using samples::findings_of;
using testing::HasSubstr;

/// Eight GPUs of a node.
results::RunData gpus(const char* model, double links) {
  results::RunData run = samples::run();
  run.device = "cuda";
  for (results::RankFacts& facts : run.rank_facts) {
    facts.text["gpu_name"] = model;
    facts.number["gpu_nvlinks"] = links;
  }
  return run;
}

results::RunData with_check(const char* name, preflight::Verdict verdict) {
  results::RunData run = samples::run();
  run.preflight.emplace();
  run.preflight->results = {{.name = name,
                             .verdict = verdict,
                             .host = "node17",
                             .device = "GPU 3",
                             .what = "what was found",
                             .cost = "what it costs",
                             .fix = "what to do"},
                            {.name = "persistence", .verdict = preflight::Verdict::warning}};
  return run;
}

TEST(SlowPair, IsFoundOfMeasuredPairs) {
  results::RunData run = samples::run();
  run.points = {samples::pairs(0)};
  const auto found = finding(run, "slow-pair");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("ranks 1 and 2 reach 39.8% of what others"));
  EXPECT_NEAR(evidence(*found, "bandwidth"), 2e9, 1);
  EXPECT_EQ(found->concern, Concern::hardware);
  EXPECT_NEAR(found->size.value(), 1 - 0.398, 5e-4) << "what the pair lacks";
  EXPECT_TRUE(found->ranks.empty());
}

TEST(SlowPair, IsNoneWherePairsAreAlikeOrShareCores) {
  results::RunData run = samples::run();
  run.points = {samples::pairs(0)};
  run.points[0].labels = {"oversubscribed"};
  EXPECT_FALSE(finding(run, "slow-pair"));
  run.points = {samples::collectives(0)};
  EXPECT_FALSE(finding(run, "slow-pair"));
}

TEST(PcieForNvlink, IsFoundByTheModelWithoutALink) {
  const auto found = finding(gpus("NVIDIA H100 80GB HBM3", 0), "pcie-for-nvlink");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sentence, "no NVLink is active on node17, though the GPUs have NVLink");
}

TEST(PcieForNvlink, IsNoneWithLinksOrOfModelsWithoutOrOfOneGpu) {
  EXPECT_FALSE(finding(gpus("NVIDIA H100 80GB HBM3", 18), "pcie-for-nvlink"));
  EXPECT_FALSE(finding(gpus("NVIDIA H100 PCIe", 0), "pcie-for-nvlink"));
  results::RunData one = gpus("NVIDIA H100 80GB HBM3", 0);
  one.rank_facts.resize(1);
  EXPECT_FALSE(finding(one, "pcie-for-nvlink"));
}

TEST(PcieForNvlink, IsFoundOfPairsOverPcieWhereThereAreNvlinks) {
  results::RunData run = gpus("some GPU", 4);
  run.points = {samples::pairs(0)};
  EXPECT_FALSE(finding(run, "pcie-for-nvlink"));
  for (results::RowData& row : run.points[0].rows) row.text["class"] = "same node, PCIe";
  const auto found = finding(run, "pcie-for-nvlink");
  ASSERT_TRUE(found);
  EXPECT_GT(evidence(*found, "over PCIe"), 4e9);
  for (results::RankFacts& facts : run.rank_facts) facts.number["gpu_nvlinks"] = 0;
  EXPECT_FALSE(finding(run, "pcie-for-nvlink"));
}

TEST(PcieForNvlink, IsFoundByPreflight) {
  const auto all = findings_of(with_check("nvlink-pairs", preflight::Verdict::warning));
  ASSERT_NE(find(all, "pcie-for-nvlink"), nullptr);
  EXPECT_EQ(find(all, "pcie-for-nvlink")->sentence, "node17, GPU 3: what was found");
  EXPECT_FALSE(finding(with_check("nvlink-pairs", preflight::Verdict::ok), "pcie-for-nvlink"));
}

TEST(FarNuma, IsFoundByPreflight) {
  for (const char* const name : {"gpu-cores", "gpu-nic", "numa-mask"}) {
    const auto all = findings_of(with_check(name, preflight::Verdict::warning));
    const Finding* const found = find(all, "far-numa");
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->sentence, "node17, GPU 3: what was found");
    EXPECT_EQ(found->next_step, "what to do");
  }
  EXPECT_TRUE(findings_of(with_check("gpu-cores", preflight::Verdict::ok)).empty());
  EXPECT_TRUE(findings_of(with_check("gpu-cores", preflight::Verdict::not_checked)).empty());
  EXPECT_TRUE(findings_of(with_check("ecc", preflight::Verdict::warning)).empty());
}

/// Every name of a check that a rule asks for is one that preflight has.
TEST(FarNuma, AsksForChecksThatThereAre) {
  for (const std::string_view name :
       {"gpu-cores", "gpu-nic", "numa-mask", "nvlink-pairs", "nvlinks"}) {
    EXPECT_NE(std::ranges::find(preflight::all_checks(), name, &preflight::Check::name),
              preflight::all_checks().end())
        << name;
  }
}

}  // namespace
}  // namespace isoscale::analysis
