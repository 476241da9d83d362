// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DeviceCheck, StopsWhereItCannotBeHad) {
  JobFacts job = bare_job("cuda", 1, 1);
  job.ranks[0].versions["device"] = "cuda: NVIDIA L40S";
  EXPECT_THAT(said(job, "device"), ElementsAre("ok|||L40S"));
  job.device_problem = "there is no driver";
  EXPECT_THAT(said(job, "device"), ElementsAre("stop|||"));
  EXPECT_EQ(results_of(job, "device").front().what, "there is no driver");
}

TEST(DeviceCheck, SaysShortlyWhyTheHostWasChosen) {
  JobFacts job = bare_job("host", 1, 1);
  job.ranks[0].versions["device"] = "OpenBLAS 0.3.21";
  job.device_reason = "no GPU: there is no driver";
  job.ranks[0].launcher = {{"SLURM_GPUS_ON_NODE", 0}};
  job.ranks[0].environment = {{"CUDA_VISIBLE_DEVICES", ""}};
  EXPECT_THAT(said(job, "device"), ElementsAre("ok|||0.3.21"));
  EXPECT_THAT(results_of(job, "device").front().what, Not(HasSubstr("there is no driver")));
}

TEST(DeviceCheck, WarnsWhereGpusWereMeant) {
  JobFacts chosen = bare_job("host", 1, 1);
  chosen.device_reason = "no GPU: there is no driver";
  JobFacts job = chosen;
  job.ranks[0].launcher = {{"SLURM_GPUS_ON_NODE", 4}};
  EXPECT_THAT(said(job, "device"), ElementsAre("warning|||SLURM_GPUS_ON_NODE 4"));
  EXPECT_THAT(results_of(job, "device").front().what, HasSubstr("there is no driver"));
  job = chosen;
  job.ranks[0].environment = {{"CUDA_VISIBLE_DEVICES", "0,1"}};
  EXPECT_THAT(said(job, "device"), ElementsAre("warning|||CUDA_VISIBLE_DEVICES 0,1"));
  job = chosen;
  job.nodes[0].gpus.emplace(2);
  EXPECT_THAT(said(job, "device"), ElementsAre("warning|||c0 2 NVIDIA"));
  job.device_reason.reset();  // --device host
  EXPECT_EQ(results_of(job, "device").front().verdict, Verdict::ok);
}

TEST(WorldSizeCheck, ComparesWithTheLauncher) {
  JobFacts job = bare_job("host", 1, 2);
  EXPECT_THAT(said(job, "world-size"), ElementsAre("not checked|||"));
  for (CheckedRank& rank : job.ranks) rank.launcher = {{"SLURM_STEP_NUM_TASKS", 2}};
  EXPECT_THAT(said(job, "world-size"), ElementsAre("ok|||2"));
  for (CheckedRank& rank : job.ranks) rank.launcher = {{"SLURM_STEP_NUM_TASKS", 8}};
  EXPECT_THAT(said(job, "world-size"), ElementsAre("stop|c0|every rank|SLURM_STEP_NUM_TASKS 8 2"));
}

/// mpirun starts its daemons as a step of one task a node, whose variables ranks inherit.
TEST(WorldSizeCheck, BelievesMpirunBeforeSlurm) {
  JobFacts job = bare_job("host", 1, 4);
  for (CheckedRank& rank : job.ranks) {
    rank.launcher = {{"OMPI_COMM_WORLD_SIZE", 4}, {"SLURM_STEP_NUM_TASKS", 1}, {"SLURM_NTASKS", 8}};
  }
  EXPECT_EQ(results_of(job, "world-size").front().verdict, Verdict::ok);
}

/// In an allocation of many tasks a small job may be meant, so it is no stop.
TEST(WorldSizeCheck, WarnsOfTheAllocationAlone) {
  JobFacts job = bare_job("host", 1, 1);
  job.ranks[0].launcher = {{"SLURM_NTASKS", 8}};
  EXPECT_THAT(said(job, "world-size"), ElementsAre("warning|c0|every rank|SLURM_NTASKS 8 1"));
  job.ranks[0].launcher = {{"PMI_SIZE", 8}};
  EXPECT_EQ(results_of(job, "world-size").front().verdict, Verdict::stop);
}

TEST(RanksPerNodeCheck, WarnsOfUnlikeNodes) {
  JobFacts job = bare_job("host", 3, 2);
  EXPECT_THAT(said(job, "ranks-per-node"), ElementsAre("ok|||2 3"));
  job.ranks.pop_back();
  EXPECT_THAT(said(job, "ranks-per-node"), ElementsAre("warning|c2||1 2"));
}

TEST(GpusPerNodeCheck, StopsWhereRanksAreMore) {
  JobFacts job = gpu_job(2, 2);
  EXPECT_THAT(said(job, "gpus-per-node"), ElementsAre("ok|||"));
  job.nodes[1].gpus->pop_back();
  job.ranks[3].gpu = job.ranks[2].gpu;
  EXPECT_THAT(said(job, "gpus-per-node"), ElementsAre("stop|c1||1 GPU 2"));
  job.share_gpu = true;
  EXPECT_EQ(results_of(job, "gpus-per-node").front().verdict, Verdict::ok);
}

TEST(GpusPerNodeCheck, BelievesRanksThatTookOnes) {
  JobFacts job = gpu_job(1, 2);
  job.nodes[0].gpus->pop_back();  // hidden from NVML
  EXPECT_EQ(results_of(job, "gpus-per-node").front().verdict, Verdict::ok);
  job.nodes[0].gpus->clear();  // all of them: nothing can be said
  EXPECT_EQ(results_of(job, "gpus-per-node").front().verdict, Verdict::not_checked);
  for (CheckedRank& rank : job.ranks) rank.gpu.reset();
  EXPECT_THAT(said(job, "gpus-per-node"), ElementsAre("stop|c0||0 GPUs 2"));
}

TEST(GpusPerNodeCheck, WarnsOfIdleOnes) {
  JobFacts job = gpu_job(1, 2);
  job.nodes[0].gpus->emplace_back().uuid = "GPU-x";
  EXPECT_THAT(said(job, "gpus-per-node"), ElementsAre("warning|c0||3 GPUs 2"));
  // Those of other jobs are seen by sysfs alone.
  job.nodes[0].gpus->back().uuid.clear();
  EXPECT_EQ(results_of(job, "gpus-per-node").front().verdict, Verdict::ok);
}

TEST(DuplicateGpuCheck, StopsUnlessSharingIsWanted) {
  JobFacts job = gpu_job(1, 3);
  EXPECT_THAT(said(job, "duplicate-gpu"), ElementsAre("ok|||"));
  job.ranks[2].gpu = "GPU-0";
  EXPECT_THAT(said(job, "duplicate-gpu"), ElementsAre("stop|c0|GPU-0|0 2"));
  job.share_gpu = true;
  EXPECT_EQ(results_of(job, "duplicate-gpu").front().verdict, Verdict::ok);
}

/// What ranks are made of: a mismatch of these hangs or lies, of the others it only disturbs.
TEST(VersionChecks, StopOrWarnWhereRanksDiffer) {
  struct Case {
    const char* key;
    const char* check;
    Verdict verdict;
  };
  for (const Case& one :
       {Case{"isoscale", "isoscale-version", Verdict::stop},
        Case{"git", "isoscale-version", Verdict::stop}, Case{"nccl", "nccl-version", Verdict::stop},
        Case{"mpi", "mpi-version", Verdict::warning},
        Case{"cuda_driver", "cuda-version", Verdict::warning},
        Case{"cuda_runtime", "cuda-version", Verdict::warning},
        Case{"cublas", "cuda-version", Verdict::warning}}) {
    JobFacts job = bare_job("cuda", 3, 2);
    for (CheckedRank& rank : job.ranks) rank.versions[one.key] = "1.2.3";
    EXPECT_EQ(results_of(job, one.check).front().verdict, Verdict::ok) << one.key;
    job.ranks[2].versions[one.key] = job.ranks[3].versions[one.key] = "1.2.4";
    const auto results = results_of(job, one.check);
    ASSERT_EQ(results.size(), 1U) << one.key;
    EXPECT_EQ(results[0].verdict, one.verdict) << one.key;
    EXPECT_EQ(results[0].host, "c1");
    EXPECT_EQ(results[0].device, "every rank");
    EXPECT_THAT(numbers(results[0].what), testing::EndsWith("1.2.4 1.2.3"));
  }
}

}  // namespace
}  // namespace isoscale::preflight
