// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight/job_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_samples.hpp"

/// What ranks tell, as one job; and jobs whose ranks see one GPU each.
namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::SizeIs;

TEST(MergedFacts, AreByIndexAndNumber) {
  JobFacts a = bare_job("host", 2, 1), b = bare_job("cuda", 1, 1);
  std::swap(a.nodes[0], a.nodes[1]);
  std::swap(a.ranks[0], a.ranks[1]);
  b.nodes[0].node = 2;
  b.nodes[0].host = "c2";
  b.nodes.push_back(a.nodes[0]);
  b.ranks[0].rank = 2;
  const JobFacts job = merge({std::move(a), std::move(b)});
  EXPECT_EQ(job.device, "host");
  ASSERT_EQ(job.nodes.size(), 3U);
  EXPECT_EQ(job.nodes[0].host, "c0");
  EXPECT_EQ(job.nodes[2].host, "c2");
  ASSERT_EQ(job.ranks.size(), 3U);
  EXPECT_EQ(job.ranks[0].rank, 0);
  EXPECT_EQ(job.ranks[2].rank, 2);
  EXPECT_TRUE(merge({}).ranks.empty());
}

/// A GPU as the bus shows it to a rank that may not use it.
GpuFacts on_the_bus(const GpuFacts& gpu) {
  GpuFacts bare;
  bare.pci_bus_id = gpu.pci_bus_id;
  bare.xids = std::vector<int>{79};
  return bare;
}

/// Parts of ranks on one node, each of which sees its own GPU alone.
std::vector<JobFacts> isolated_parts(int ranks) {
  JobFacts job = gpu_job(1, ranks);
  set_gpus(job, &GpuFacts::ecc, true);
  set_gpus(job, &GpuFacts::nvlink_peers, std::vector<std::string>{"0000:07:00.0"});
  std::vector<JobFacts> parts;
  for (std::size_t r = 0; r < job.ranks.size(); ++r) {
    JobFacts& part = parts.emplace_back();
    part.device = "cuda";
    part.ranks = {job.ranks[r]};
    part.ranks[0].visible_gpus = {*job.ranks[r].gpu};
    part.nodes.emplace_back().gpus = {gpu_at(job, 0, r)};
  }
  CheckedNode& node = parts[0].nodes[0];
  node.host = "c0";
  for (int j = 1; j < ranks; ++j) {
    node.gpus->push_back(on_the_bus(gpu_at(job, 0, static_cast<std::size_t>(j))));
    for (int i = 0; i < j; ++i)
      node.peers.push_back({.i = i, .j = j, .peer_access = {}, .link = "system"});
  }
  return parts;
}

TEST(MergedFacts, HaveGpusThatTheFirstRankMayNotUse) {
  const JobFacts job = merge(isolated_parts(3));
  ASSERT_THAT(job.nodes, SizeIs(1));
  ASSERT_THAT(job.nodes[0].gpus, Optional(SizeIs(3)));
  for (std::size_t g = 0; g < 3; ++g) {
    const GpuFacts& gpu = job.nodes[0].gpus->at(g);
    EXPECT_EQ(gpu.uuid, fmt::format("GPU-{}", g));
    EXPECT_EQ(gpu.ecc, true);
    const std::vector<int> none{}, fallen{79};
    EXPECT_EQ(gpu.xids.value_or(none), g == 0 ? none : fallen);
  }
  for (const CheckedPeers& peers : job.nodes[0].peers) EXPECT_EQ(peers.link, "NVLink");
  EXPECT_EQ(job.nodes[0].host, "c0");
}

TEST(MergedFacts, KeepWhatTheFirstRankSawItself) {
  JobFacts first = gpu_job(1, 2);
  set_gpus(first, &GpuFacts::ecc, true);
  JobFacts second;
  GpuFacts again = gpu_at(first, 0, 1);
  again.ecc = false;
  second.nodes.emplace_back().gpus = {again};
  const JobFacts job = merge({first, second});
  ASSERT_THAT(job.nodes[0].gpus, Optional(SizeIs(2)));
  EXPECT_EQ(job.nodes[0].gpus->at(1).ecc, true);
}

TEST(MergedFacts, TakeGpusOfNodesWithoutABus) {
  std::vector<JobFacts> parts = isolated_parts(2);
  parts[0].nodes[0].gpus->pop_back();
  parts[0].nodes[0].peers.clear();
  EXPECT_THAT(merge(std::move(parts)).nodes[0].gpus, Optional(SizeIs(2)));
}

/// The fault of a GPU that only another rank sees is found.
TEST(IsolatedRanks, AreJudgedOnAllTheirGpus) {
  std::vector<JobFacts> parts = isolated_parts(2);
  EXPECT_THAT(said(merge(parts), "ecc"), ElementsAre("ok|||"));
  EXPECT_EQ(results_of(merge(parts), "gpus-per-node").front().verdict, Verdict::ok);
  parts[1].nodes[0].gpus->front().ecc = false;
  EXPECT_THAT(said(merge(parts), "ecc"), ElementsAre("warning|c0|GPU 1 (0000:02:00.0)|"));
}

TEST(IsolatedRanks, LeaveUnknownWhatNobodyLookedAt) {
  std::vector<JobFacts> parts = isolated_parts(3);
  parts[2].nodes.clear();
  const JobFacts job = merge(parts);
  EXPECT_THAT(said(job, "ecc"), ElementsAre("ok|||1 3"));
  EXPECT_THAT(said(job, "nvlink-pairs"), ElementsAre("ok|||2 3"));
}

TEST(GpuVisibilityCheck, WarnsWhereRanksMayNotUseEachOthers) {
  JobFacts job = merge(isolated_parts(4));
  EXPECT_THAT(said(job, "gpu-visibility"), ElementsAre("warning|c0|every rank|1 4 GPUs"));
  EXPECT_THAT(results_of(job, "gpu-visibility").front().fix, testing::HasSubstr("--gpu-bind=none"));
  const std::vector<std::string> all{"GPU-0", "GPU-1", "GPU-2", "GPU-3", "GPU-9"};
  for (CheckedRank& rank : job.ranks) rank.visible_gpus = all;
  EXPECT_THAT(said(job, "gpu-visibility"), ElementsAre("ok|||"));
  for (CheckedRank& rank : job.ranks) rank.visible_gpus.reset();
  EXPECT_EQ(results_of(job, "gpu-visibility").front().verdict, Verdict::not_checked);
  // An instance of a partitioned GPU is not among those that NVML lists.
  job.ranks[0].visible_gpus = {"GPU-whole"};
  EXPECT_EQ(results_of(job, "gpu-visibility").front().verdict, Verdict::not_checked);
}

TEST(GpuVisibilityCheck, IsFineWithOneGpuOnEachNode) {
  JobFacts job = gpu_job(2, 1);
  for (CheckedRank& rank : job.ranks) rank.visible_gpus = {*rank.gpu};
  EXPECT_EQ(results_of(job, "gpu-visibility").front().verdict, Verdict::ok);
}

}  // namespace
}  // namespace isoscale::preflight
