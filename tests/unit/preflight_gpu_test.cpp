// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;

constexpr const char* second = "warning|c0|GPU 1 (0000:02:00.0)|";

TEST(GpuLikenessChecks, CompareOnlyWithinAModel) {
  JobFacts job = gpu_job(1, 4);
  set_gpus(job, &GpuFacts::memory, 8e10);
  gpu_at(job, 0, 3).memory = 4e10;
  gpu_at(job, 0, 3).name = "NVIDIA A100-PCIE-40GB";
  EXPECT_EQ(results_of(job, "gpu-memory").front().verdict, Verdict::ok);
  EXPECT_THAT(said(job, "gpu-model"),
              ElementsAre("warning|c0|GPU 3 (0000:04:00.0)|A100-PCIE-40GB H100 80GB HBM3"));
}

TEST(PowerLimitCheck, WarnsBelowTheDefaultThoughAllAreAlike) {
  JobFacts job = gpu_job(2, 1);
  set_gpus(job, &GpuFacts::power_limit, 300.0);
  set_gpus(job, &GpuFacts::power_limit_default, 400.0);
  EXPECT_THAT(said(job, "power-limit"),
              ElementsAre("warning|c0 and c1|GPU 0 (0000:01:00.0)|300 W 400 W"));
}

TEST(ApplicationClockCheck, OnlyTellsWhatAllAreSetTo) {
  JobFacts job = gpu_job(1, 2);
  set_gpus(job, &GpuFacts::sm_clock_application, 1.41e9);
  set_gpus(job, &GpuFacts::sm_clock_max, 1.98e9);
  EXPECT_THAT(said(job, "application-clock"), ElementsAre("ok|||1.41 GHz 1.98 GHz"));
}

TEST(EccCheck, LeavesModelsAloneOnWhichItIsAChoice) {
  JobFacts job = gpu_job(1, 1);
  gpu_at(job, 0, 0).ecc = false;
  for (const char* const name :
       {"NVIDIA GeForce RTX 4090", "NVIDIA RTX A4000", "NVIDIA RTX A1000"}) {
    gpu_at(job, 0, 0).name = name;
    EXPECT_EQ(results_of(job, "ecc").front().verdict, Verdict::ok) << name;
  }
  for (const char* const name : {"NVIDIA L4", "NVIDIA A40", "Tesla V100-SXM2-16GB"}) {
    gpu_at(job, 0, 0).name = name;
    EXPECT_EQ(results_of(job, "ecc").front().verdict, Verdict::warning) << name;
  }
}

TEST(XidCheck, TellsHardwareFromMistakesOfPrograms) {
  JobFacts job = gpu_job(1, 1);
  gpu_at(job, 0, 0).xids = std::vector<int>{};
  EXPECT_EQ(results_of(job, "xid").front().verdict, Verdict::ok);
  gpu_at(job, 0, 0).xids = {13, 31, 43, 45};
  EXPECT_EQ(results_of(job, "xid").front().verdict, Verdict::ok);
  gpu_at(job, 0, 0).xids = {31, 79, 149};
  const std::string place = "warning|c0|GPU 0 (0000:01:00.0)|";
  EXPECT_THAT(said(job, "xid"), ElementsAre(place + "79", place + "149"));
  for (const int code : {48, 63, 64, 74, 79, 92, 94, 95, 119, 120}) {
    gpu_at(job, 0, 0).xids = {code};
    const auto results = results_of(job, "xid");
    EXPECT_EQ(results.front().verdict, Verdict::warning) << code;
    EXPECT_THAT(results.front().what, testing::HasSubstr(": ")) << code;
  }
}

TEST(ComputeModeCheck, StopsWhereRanksCannotCompute) {
  JobFacts job = gpu_job(1, 2);
  set_gpus(job, &GpuFacts::compute_mode, "exclusive process");
  EXPECT_EQ(results_of(job, "compute-mode").front().verdict, Verdict::ok);
  job.ranks[1].gpu = "GPU-0";
  EXPECT_THAT(said(job, "compute-mode"), ElementsAre("stop|c0|GPU 0 (0000:01:00.0)|2"));
  gpu_at(job, 0, 0).compute_mode = "prohibited";
  EXPECT_THAT(said(job, "compute-mode"), ElementsAre("stop|c0|GPU 0 (0000:01:00.0)|"));
}

TEST(OtherProcessesCheck, TellsThemFromTheJobsOwn) {
  using Pids = std::vector<std::int64_t>;
  JobFacts job = gpu_job(1, 2);
  gpu_at(job, 0, 0).processes = Pids{1000};
  gpu_at(job, 0, 1).processes = Pids{1001, 7};
  EXPECT_THAT(said(job, "other-processes"), ElementsAre(std::string{second} + "7"));
  // In a container the driver's ids are not those that ranks know.
  gpu_at(job, 0, 0).processes = Pids{51000};
  gpu_at(job, 0, 1).processes = Pids{51001};
  EXPECT_EQ(results_of(job, "other-processes").front().verdict, Verdict::not_checked);
  gpu_at(job, 0, 1).processes = Pids{51001, 51002};
  EXPECT_THAT(said(job, "other-processes"), ElementsAre(std::string{second} + "2 1"));
}

TEST(OtherProcessesCheck, SeesMemoryThatHiddenOnesUse) {
  JobFacts job = gpu_job(1, 4);
  set_gpus(job, &GpuFacts::processes, std::vector<std::int64_t>{});
  set_gpus(job, &GpuFacts::memory_used, 5e8);
  EXPECT_EQ(results_of(job, "other-processes").front().verdict, Verdict::ok);
  gpu_at(job, 0, 1).memory_used = 2e10;
  EXPECT_THAT(said(job, "other-processes"), ElementsAre(std::string{second} + "18.6 GiB 477 MiB"));
}

/// GPUs that no rank took may belong to another job.
TEST(GpuChecks, JudgeThoseThatTheJobTook) {
  JobFacts job = gpu_job(1, 2);
  set_gpus(job, &GpuFacts::ecc, true);
  gpu_at(job, 0, 1).ecc = false;
  job.ranks.pop_back();
  EXPECT_EQ(results_of(job, "ecc").front().verdict, Verdict::ok);
  job.ranks[0].gpu.reset();
  EXPECT_EQ(results_of(job, "ecc").front().verdict, Verdict::warning);
}

}  // namespace
}  // namespace isoscale::preflight
