// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "preflight_machines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "preflight_samples.hpp"

/// Healthy machines have no findings but those of their kind, and each fault has its own.
namespace isoscale::preflight {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

/// "warning ecc-errors|c0|GPU 1 (0000:02:00.0)|3" of each result that is a warning or a stop.
std::vector<std::string> wrong_in(const JobFacts& job) {
  std::vector<std::string> lines;
  for (const CheckResult& result : check_job(job, {})) {
    if (result.verdict < Verdict::warning) continue;
    lines.push_back(fmt::format("{} {}|{}|{}|{}", name(result.verdict), result.name, result.host,
                                result.device, numbers(result.what)));
  }
  return lines;
}

TEST(HealthyMachine, OfTwoHgxNodes) {
  const JobFacts job = hgx_job();
  EXPECT_THAT(wrong_in(job), IsEmpty());
  EXPECT_EQ(said(job, "rail-map"),
            "ok|||GPU0-mlx5_0 GPU1-mlx5_1 GPU2-mlx5_2 GPU3-mlx5_3 GPU4-mlx5_4 GPU5-mlx5_5 "
            "GPU6-mlx5_6 GPU7-mlx5_7 2");
  // The adapters of storage are slower, and their second ports are not wired.
  EXPECT_EQ(said(job, "port-state"), "ok|||mlx5_11 1 mlx5_9 1");
  EXPECT_EQ(said(job, "port-rate"), "ok|||200 Gbit/s 400 Gbit/s");
  EXPECT_EQ(said(job, "nvlinks"), "ok|||18");
  EXPECT_EQ(said(job, "cuda-settings"), "ok|||CUDA_DEVICE_MAX_CONNECTIONS=1");
  for (const CheckResult& result : check_job(job, {})) {
    const bool is_of_the_host = result.name == "blas-threads" || result.name == "thread-settings";
    EXPECT_EQ(result.verdict, is_of_the_host ? Verdict::not_checked : Verdict::ok)
        << to_sentence(result);
  }
}

/// Two of the GPUs have their only adapter on the other socket; that nothing is NVLink is no fault.
TEST(HealthyMachine, OfABoxWithoutNvlink) {
  const JobFacts job = pcie_job();
  EXPECT_THAT(wrong_in(job), ElementsAre("warning gpu-nic|c0|GPU 2 (0000:03:00.0)|mlx5_0",
                                         "warning gpu-nic|c0|GPU 3 (0000:04:00.0)|mlx5_0"));
  EXPECT_EQ(said(job, "nvlink-pairs"), "ok|||");
  EXPECT_EQ(said(job, "xid"), "not checked|||");
  EXPECT_EQ(said(job, "neighbour-bandwidth"), "not checked|||4");
}

TEST(HealthyMachine, OfGraceHoppers) {
  const JobFacts job = grace_hopper_job();
  EXPECT_THAT(wrong_in(job), IsEmpty());
  EXPECT_EQ(said(job, "peer-access"), "not checked|||");
  EXPECT_EQ(said(job, "gpu-pcie"), "not checked|||");
  EXPECT_EQ(said(job, "xid"), "ok|||");
}

TEST(HealthyMachine, OfOneNvlinkDomain) {
  const JobFacts job = gb200_job();
  EXPECT_THAT(wrong_in(job), IsEmpty());
  EXPECT_EQ(said(job, "nvlink-domain"), "ok|||16 GPUs 1 NVLink");
  EXPECT_EQ(said(job, "rail-map"), "ok|||GPU0-mlx5_0 GPU1-mlx5_1 GPU2-mlx5_2 GPU3-mlx5_3 4");
}

TEST(HealthyMachine, OfACpuCluster) {
  const JobFacts job = cpu_job();
  EXPECT_THAT(wrong_in(job), IsEmpty());
  EXPECT_EQ(said(job, "ecc"), "not checked|||");
  EXPECT_EQ(said(job, "port-rate"), "ok|||25 Gbit/s 200 Gbit/s");
}

TEST(Faults, AreFoundAloneAndNothingElseIs) {
  for (const Fault& fault : faults()) {
    JobFacts job = hgx_job();
    fault.plant(job);
    EXPECT_THAT(wrong_in(job), UnorderedElementsAreArray(fault.found));
  }
}

/// Numbers are left out: some are of other ranks where another fault keeps ranks apart.
TEST(Faults, AreFoundTogether) {
  const auto without_numbers = [](const std::vector<std::string>& lines) {
    std::set<std::string> all;
    for (const std::string& line : lines) all.insert(line.substr(0, line.rfind('|')));
    return all;
  };
  std::set<std::string> expected;
  for (const Fault& fault : faults()) expected.merge(without_numbers(fault.found));
  EXPECT_EQ(without_numbers(wrong_in(broken_job())), expected);
}

}  // namespace
}  // namespace isoscale::preflight
