// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;

TEST(GpuDirectCheck, WantsEitherOfBothWays) {
  JobFacts job = gpu_job(1, 1);
  add_ports(job);
  CheckedNode& node = job.nodes[0];
  node.nvidia_peermem = false;
  EXPECT_EQ(results_of(job, "gpudirect-rdma").front().verdict, Verdict::not_checked);
  node.dmabuf = true;
  EXPECT_EQ(results_of(job, "gpudirect-rdma").front().verdict, Verdict::ok);
  node.dmabuf = false;
  EXPECT_THAT(said(job, "gpudirect-rdma"), ElementsAre("warning|c0||nvidia_peermem"));
  node.ports->clear();
  EXPECT_EQ(results_of(job, "gpudirect-rdma").front().verdict, Verdict::not_checked);
}

/// Gives ranks of one node cores, which are their CPUs too.
JobFacts bound_job(const char* device, const std::vector<std::vector<int>>& cores) {
  JobFacts job = bare_job(device, 1, static_cast<int>(cores.size()));
  for (std::size_t r = 0; r < cores.size(); ++r) job.ranks[r].cores = job.ranks[r].cpus = cores[r];
  return job;
}

TEST(SharedCoresCheck, FindsWhetherRanksHaveCoresOfTheirOwn) {
  using Cores = std::vector<std::vector<int>>;
  const Cores apart{{0, 1}, {2, 3}}, overlapping{{0, 1}, {1, 2}, {0, 1, 2}}, alike{{0}, {0}},
      crowded{{0, 1}, {0, 1}, {0, 1}, {2}};
  for (const Cores& cores : {apart, overlapping}) {
    EXPECT_EQ(results_of(bound_job("host", cores), "shared-cores").front().verdict, Verdict::ok);
  }
  EXPECT_THAT(said(bound_job("host", alike), "shared-cores"), ElementsAre("warning|c0||1 2"));
  EXPECT_THAT(said(bound_job("cuda", crowded), "shared-cores"), ElementsAre("stop|c0||3 4"));
}

TEST(SingleCoreCheck, WarnsOfRanksOnOneCore) {
  EXPECT_EQ(results_of(bound_job("host", {{0, 1}}), "single-core").front().verdict, Verdict::ok);
  // Two hardware threads of one core.
  EXPECT_THAT(said(bound_job("host", {{0, 0}, {1, 2}}), "single-core"),
              ElementsAre("warning|c0|rank 0|"));
}

TEST(BlasThreadsCheck, ComparesWithCoresOfNodeAndRank) {
  JobFacts job = bound_job("host", {{0, 1}, {2, 3}});
  job.nodes[0].cores = 4;
  for (CheckedRank& rank : job.ranks) rank.blas_threads = 2;
  EXPECT_EQ(results_of(job, "blas-threads").front().verdict, Verdict::ok);
  for (CheckedRank& rank : job.ranks) rank.blas_threads = 3;
  EXPECT_THAT(said(job, "blas-threads"),
              ElementsAre("warning|c0||6 BLAS 4", "warning|c0|every rank|3 BLAS 2"));
}

TEST(BlasThreadsCheck, LeavesOneThreadARankToSharedCores) {
  JobFacts job = bare_job("host", 1, 4);
  job.nodes[0].cores = 2;
  EXPECT_EQ(results_of(job, "blas-threads").front().verdict, Verdict::ok);
  for (CheckedRank& rank : job.ranks) rank.blas_threads = 2;
  EXPECT_THAT(said(job, "blas-threads"), ElementsAre("warning|c0||8 BLAS 2"));
}

TEST(CpuQuotaCheck, ComparesWithThreadsThatAreBusy) {
  JobFacts job = bare_job("host", 1, 4);
  job.nodes[0].cpu_quota = 4;
  EXPECT_EQ(results_of(job, "cpu-quota").front().verdict, Verdict::ok);
  job.nodes[0].cpu_quota = 2.5;
  EXPECT_THAT(said(job, "cpu-quota"), ElementsAre("warning|c0||2.5 CPUs 4"));
}

TEST(LockedMemoryCheck, LeavesNodesWithoutAdaptersAlone) {
  JobFacts job = bare_job("host", 1, 1);
  add_ports(job);
  job.ranks[0].locked_memory_limit = 65536;
  EXPECT_THAT(said(job, "locked-memory"), ElementsAre("warning|c0|every rank|64.0 KiB"));
  job.nodes[0].ports->clear();
  EXPECT_EQ(results_of(job, "locked-memory").front().verdict, Verdict::not_checked);
  // Of several nodes, only those with adapters are judged.
  job = bare_job("host", 2, 1);
  add_ports(job);
  job.ranks[0].locked_memory_unlimited = true;
  job.ranks[1].locked_memory_limit = 65536;
  EXPECT_EQ(results_of(job, "locked-memory").front().verdict, Verdict::warning);
  job.nodes[1].ports->clear();
  EXPECT_EQ(results_of(job, "locked-memory").front().verdict, Verdict::ok);
}

TEST(SharedMemoryCheck, ComparesWithRanksOfTheNode) {
  constexpr double mebibyte = 1024.0 * 1024;
  JobFacts job = bare_job("host", 1, 4);
  job.nodes[0].shm_free = 256 * mebibyte;
  EXPECT_EQ(results_of(job, "shared-memory").front().verdict, Verdict::ok);
  job.nodes[0].shm_free = 64 * mebibyte;
  EXPECT_THAT(said(job, "shared-memory"), ElementsAre("warning|c0||64.0 MiB 4 256 MiB"));
  // However many ranks: no more than is recommended for a container.
  job = bare_job("host", 1, 64);
  job.nodes[0].shm_free = 1024 * mebibyte;
  EXPECT_EQ(results_of(job, "shared-memory").front().verdict, Verdict::ok);
}

/// There powersave is the dynamic default.
TEST(CpuGovernorCheck, AsksActiveDriversForTheirPreference) {
  for (const char* const driver : {"intel_pstate", "amd-pstate-epp"}) {
    JobFacts job = bare_job("host", 1, 1);
    CheckedNode& node = job.nodes[0];
    node.governors = {{"powersave", 8}};
    node.frequency_driver = driver;
    EXPECT_EQ(results_of(job, "cpu-governor").front().verdict, Verdict::ok) << driver;
    node.energy_preferences = {{"balance_performance", 8}};
    EXPECT_EQ(results_of(job, "cpu-governor").front().verdict, Verdict::ok) << driver;
    node.energy_preferences = {{"balance_performance", 5}, {"balance_power", 2}, {"power", 1}};
    EXPECT_THAT(said(job, "cpu-governor"),
                ElementsAre("warning|c0||3 8 CPUs energy_performance_preference"))
        << driver;
    node.frequency_driver = "acpi-cpufreq";
    EXPECT_THAT(said(job, "cpu-governor"), ElementsAre("warning|c0||8 8 CPUs"));
  }
}

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

/// Four GPUs on each of two nodes, as fast as each other but for a little.
JobFacts measured_job() {
  JobFacts job = gpu_job(2, 4);
  for (CheckedRank& rank : job.ranks) {
    rank.gemm_rate = 6e14 + 1e12 * (rank.rank % 3);
    rank.neighbours = {{.rank = rank.rank ^ 1, .bandwidth = 3e11 + 1e9 * (rank.rank / 2 % 2)},
                       {.rank = (rank.rank + 4) % 8, .bandwidth = 4e10 + 1e8 * (rank.rank % 2)}};
  }
  return job;
}

TEST(GemmRateCheck, AllowsWhatHealthyGpusDifferBy) {
  JobFacts job = measured_job();
  job.ranks[6].gemm_rate = 5.8e14;  // 3.5% below
  EXPECT_EQ(results_of(job, "gemm-rate").front().verdict, Verdict::ok);
}

/// Where all scatter, a value far below the median is nothing special.
TEST(GemmRateCheck, AllowsWhatAllScatterBy) {
  JobFacts job = measured_job();
  const std::vector<double> rates{5.0e14, 5.4e14, 5.8e14, 6.0e14, 6.0e14, 6.2e14, 6.6e14, 7.0e14};
  for (std::size_t r = 0; r < rates.size(); ++r) job.ranks[r].gemm_rate = rates[r];
  EXPECT_EQ(results_of(job, "gemm-rate").front().verdict, Verdict::ok);
}

TEST(GemmRateCheck, ComparesOnlyWithItsLike) {
  JobFacts job = measured_job();
  for (const std::size_t r : {0U, 4U}) {
    gpu_at(job, r / 4, 0).name = "NVIDIA A100-SXM4-80GB";
    job.ranks[r].gemm_rate = 2.5e14;
  }
  EXPECT_THAT(said(job, "gemm-rate"), ElementsAre("ok|||2 8"));
}

TEST(GemmRateCheck, SaysWhyThereIsNone) {
  EXPECT_THAT(said(gpu_job(1, 3), "gemm-rate"), ElementsAre("not checked|||4"));
  JobFacts job = gpu_job(1, 8);
  job.sniff_skipped = "ranks share GPUs";
  EXPECT_THAT(said(job, "gemm-rate"), ElementsAre("not checked|||"));
}

TEST(GemmRateCheck, ComparesHostsByModelAndThreads) {
  JobFacts job = bare_job("host", 1, 5);
  job.nodes[0].cpu_model = "EPYC";
  for (CheckedRank& rank : job.ranks) rank.gemm_rate = 1e12;
  job.ranks[4].gemm_rate = 0.8e12;
  EXPECT_THAT(said(job, "gemm-rate"),
              ElementsAre("warning|c0|rank 4|800 GFLOP/s 20.0% 1 TFLOP/s 5 1 BLAS"));
  job.ranks[4].blas_threads = 2;
  EXPECT_EQ(results_of(job, "gemm-rate").front().verdict, Verdict::ok);
}

/// Sets what a pair measured, on both of them.
void set_pair(JobFacts& job, std::size_t a, std::size_t b, std::optional<double> bandwidth) {
  for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
    for (CheckedNeighbour& other : job.ranks[from].neighbours) {
      if (other.rank == static_cast<int>(to)) other.bandwidth = bandwidth;
    }
  }
}

TEST(NeighbourBandwidthCheck, ComparesPairsInsideApartFromPairsAcross) {
  JobFacts job = measured_job();
  EXPECT_THAT(said(job, "neighbour-bandwidth"), ElementsAre("ok|||"));
  set_pair(job, 1, 5, 2e10);
  EXPECT_THAT(said(job, "neighbour-bandwidth"),
              ElementsAre("warning|c0 and c1|rank 1, GPU 1 (0000:02:00.0) and rank 5, GPU 1 "
                          "(0000:02:00.0)|20 GB/s 50.0% 40 GB/s 4"));
}

/// Pairs of one node by what joins them: PCIe is no slow NVLink.
TEST(NeighbourBandwidthCheck, ComparesPairsByTheirLink) {
  JobFacts job = measured_job();
  for (CheckedNode& node : job.nodes) {
    node.peers = {{.i = 0, .j = 1, .peer_access = true, .link = "NVLink"},
                  {.i = 2, .j = 3, .peer_access = true, .link = "system"}};
  }
  set_pair(job, 2, 3, 2e10);
  set_pair(job, 6, 7, 2e10);
  EXPECT_THAT(said(job, "neighbour-bandwidth"), ElementsAre("ok|||4 8"));
}

TEST(NeighbourBandwidthCheck, StopsWherePairsDoNotAnswer) {
  JobFacts job = measured_job();
  for (CheckedNeighbour& other : job.ranks[4].neighbours) {
    if (other.rank == 0) other.bandwidth.reset();
  }
  EXPECT_THAT(
      said(job, "neighbour-bandwidth"),
      ElementsAre("stop|c0 and c1|rank 0, GPU 0 (0000:01:00.0) and rank 4, GPU 0 (0000:01:00.0)|"));
}

}  // namespace
}  // namespace isoscale::preflight
