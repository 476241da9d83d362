// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;

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
