// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "preflight_machines.hpp"
#include "preflight_samples.hpp"

namespace isoscale::preflight {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

TEST(Checks, HaveNamesOfTheirOwnAndSaySomething) {
  std::set<std::string_view> names;
  for (const Check& check : all_checks()) {
    EXPECT_TRUE(names.insert(check.name).second) << check.name;
    EXPECT_FALSE(check.about.empty()) << check.name;
    EXPECT_EQ(check.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos);
  }
  for (const JobFacts& job : {JobFacts{}, bare_job("host", 2, 2), bare_job("cuda", 2, 2)}) {
    std::set<std::string> said;
    for (const CheckResult& result : check_job(job, {})) said.insert(result.name);
    EXPECT_EQ(said.size(), names.size());
  }
}

/// Where nothing but ranks and nodes is known, only checks of just those may say more than that
/// they have not looked.
TEST(Checks, AreNeverOkWithoutASource) {
  const std::set<std::string> of_ranks_alone{"device",          "ranks-per-node",  "equal-settings",
                                             "nccl-transports", "nccl-files",      "nccl-debug",
                                             "nccl-choices",    "nccl-interfaces", "cuda-settings",
                                             "ucx-transports",  "thread-settings"};
  for (const char* const device : {"host", "cuda"}) {
    for (const CheckResult& result : check_job(bare_job(device, 2, 4), {})) {
      if (of_ranks_alone.contains(result.name)) continue;
      EXPECT_EQ(result.verdict, Verdict::not_checked) << device << ": " << to_sentence(result);
      EXPECT_FALSE(result.what.empty()) << result.name;
    }
  }
  for (const CheckResult& result : check_job(JobFacts{}, {})) {
    EXPECT_EQ(result.verdict, Verdict::not_checked) << to_sentence(result);
  }
}

/// A source that only some have is not passed over in silence.
TEST(Checks, SayOfHowManyNothingIsKnown) {
  JobFacts job = gpu_job(2, 2);
  gpu_at(job, 0, 1).ecc = true;
  EXPECT_THAT(said(job, "ecc"), ElementsAre("ok|||3 4"));
}

TEST(Checks, HaveCostAndFixWhereSomethingIsWrong) {
  std::set<std::string> wrong;
  for (const CheckResult& result : check_job(broken_job(), {})) {
    EXPECT_FALSE(result.what.empty()) << result.name;
    if (result.verdict < Verdict::warning) {
      EXPECT_TRUE(result.cost.empty()) << result.name;
      continue;
    }
    wrong.insert(result.name);
    EXPECT_FALSE(result.cost.empty()) << result.name;
    EXPECT_FALSE(result.fix.empty()) << result.name;
  }
  EXPECT_GT(wrong.size(), 30U);
}

TEST(CheckJob, JoinsHostsOfResultsThatAreAlike) {
  JobFacts job = gpu_job(40, 1);
  set_gpus(job, &GpuFacts::persistence, false);
  const auto results = results_of(job, "persistence");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].host, "c0, c1 and 38 more");
  EXPECT_EQ(results[0].device, "GPU 0 (0000:01:00.0)");
}

TEST(CheckJob, MarksStopsThatAreAllowed) {
  JobFacts job = gpu_job(1, 2);
  job.ranks[1].gpu = job.ranks[0].gpu;
  const std::vector<CheckResult> refused = check_job(job, {});
  EXPECT_TRUE(stops(refused));
  const std::vector<CheckResult> allowed = check_job(job, {"duplicate-gpu", "ecc"});
  EXPECT_FALSE(stops(allowed));
  EXPECT_THAT(allowed, Contains(Field(&CheckResult::allowed, true)).Times(1));
  EXPECT_FALSE(stops({}));
}

TEST(CheckJob, RefusesToAllowWhatNoCheckIs) {
  EXPECT_THAT([] { static_cast<void>(check_job(JobFacts{}, {"duplicate-gpus"})); },
              ThrowsMessage<base::UsageError>(HasSubstr("did you mean 'duplicate-gpu'?")));
}

TEST(ToSentence, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(
      to_sentence({.name = "ecc", .host = "", .device = "", .what = "on", .cost = "", .fix = ""}),
      "ok ecc: on");
  EXPECT_EQ(to_sentence({.name = "port-rate",
                         .verdict = Verdict::warning,
                         .host = "c3",
                         .device = "mlx5_0 port 1",
                         .what = "runs at 200 Gbit/s",
                         .cost = "half the bandwidth",
                         .fix = "reseat the cable"}),
            "warning port-rate: c3, mlx5_0 port 1: runs at 200 Gbit/s; half the bandwidth; reseat "
            "the cable");
  EXPECT_EQ(to_sentence({.name = "device",
                         .verdict = Verdict::stop,
                         .host = "",
                         .device = "",
                         .what = "none",
                         .cost = "",
                         .fix = "",
                         .allowed = true}),
            "stop device (allowed): none");
}

/// What is said of a thousand ranks is read by people: alike findings are one.
TEST(CheckJob, SaysLittleOfManyRanks) {
  constexpr int nodes = 128, per_node = 8;
  JobFacts job = gpu_job(nodes, per_node);
  add_ports(job);
  set_gpus(job, &GpuFacts::ecc, false);
  for (CheckedNode& node : job.nodes) {
    node.cores = 112;
    node.shm_free = 1;
    node.numa_cpus = {{"0", {0, 1, 2, 3, 4, 5, 6, 7}}, {"1", {8, 9, 10, 11, 12, 13, 14, 15}}};
    for (int i = 0; i < per_node; ++i) {
      for (int j = i + 1; j < per_node; ++j) {
        node.peers.push_back({.i = i, .j = j, .peer_access = true, .link = "NVLink"});
      }
    }
  }
  for (CheckedRank& rank : job.ranks) {
    for (int cpu = 0; cpu < 16; ++cpu) rank.cpus.push_back(cpu);
    rank.cores = rank.cpus;
    rank.locked_memory_limit = 65536;
    rank.versions = {{"isoscale", "1.0"}, {"build_type", "Debug"}};
    rank.environment = {{"NCCL_DEBUG", "INFO"}, {"NCCL_P2P_DISABLE", "1"}};
    rank.gemm_rate = 6e14 + rank.rank;
  }
  std::size_t wrong = 0;
  for (const CheckResult& result : check_job(job, {})) {
    if (result.verdict < Verdict::warning) continue;
    ++wrong;
    EXPECT_EQ(result.host, "c0, c1 and 126 more") << to_sentence(result);
  }
  // ECC of eight GPUs, shared and locked memory, NUMA, the build and two variables.
  EXPECT_EQ(wrong, 8U + 6U);
}

}  // namespace
}  // namespace isoscale::preflight
