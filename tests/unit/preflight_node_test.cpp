// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;

/// Ports of four nodes.
JobFacts port_job() {
  JobFacts job = bare_job("host", 4, 1);
  add_ports(job);
  return job;
}

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

TEST(NumaMaskCheck, WarnsOfRanksOnSeveralNodes) {
  JobFacts job = bound_job("host", {{0, 1}, {2, 3}});
  job.nodes[0].numa_cpus = {{"0", {0, 1}}, {"1", {2, 3}}};
  EXPECT_EQ(results_of(job, "numa-mask").front().verdict, Verdict::ok);
  job.ranks[1].cpus = {1, 2};
  EXPECT_THAT(said(job, "numa-mask"), ElementsAre("warning|c0|rank 1|2 NUMA"));
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

TEST(LockedMemoryCheck, WarnsWhereAdaptersNeedIt) {
  JobFacts job = port_job();
  for (CheckedRank& rank : job.ranks) rank.locked_memory_unlimited = true;
  EXPECT_EQ(results_of(job, "locked-memory").front().verdict, Verdict::ok);
  job.ranks[2].locked_memory_unlimited = false;
  job.ranks[2].locked_memory_limit = 65536;
  EXPECT_THAT(said(job, "locked-memory"), ElementsAre("warning|c2|every rank|64.0 KiB"));
  job.nodes[2].ports->clear();
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

}  // namespace
}  // namespace isoscale::preflight
