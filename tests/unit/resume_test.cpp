// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fstream>

#include "planned_runs.hpp"
#include "results/reader/reader.hpp"
#include "results_samples.hpp"
#include "runner/plan/time_estimates_and_schedule.hpp"
#include "runner/resume.hpp"
#include "runner/run_file.hpp"
#include "tests/support/scratch_directory.hpp"

namespace isoscale::runner {
namespace {

using machine::MachineFacts;
using results::PointData;
using results::PointStatus;
using results::RunData;

RunData run_of(int ranks) {
  RunData run;
  run.isoscale_version = "1.2.3";
  run.git_hash = "abc";
  run.device = "host";
  run.mpi_library = "Open MPI";
  run.ranks = ranks;
  run.nodes = 2;
  for (int rank = 0; rank < ranks; ++rank) {
    run.rank_facts.push_back({.rank = rank,
                              .host = rank < ranks / 2 ? "node1" : "node2",
                              .node = rank < ranks / 2 ? 0 : 1,
                              .text = {{"cpu_model", "A"}, {"gpu_uuid", std::to_string(rank)}}});
  }
  return run;
}

PointData point_of(int index, PointStatus status, std::string reason = "") {
  PointData point;
  point.index = index;
  point.status = status;
  point.reason = std::move(reason);
  return point;
}

TEST(Differences, AreNoneBetweenLaunchesOnOtherHostsAndGpus) {
  RunData now = run_of(4);
  for (results::RankFacts& rank : now.rank_facts) rank.host = rank.text["gpu_uuid"] = "other";
  EXPECT_THAT(differences(run_of(4), now), IsEmpty());
}

TEST(Differences, AreAllNamed) {
  RunData now = run_of(4);
  now.git_hash = "def";
  now.nodes = 3;
  now.rank_facts[2].text["cpu_model"] = "B";
  now.rank_facts[3].text["cpu_model"] = "C";
  now.rank_facts[3].node = 2;
  EXPECT_THAT(differences(run_of(4), now),
              ElementsAre("git hash 'def', not 'abc'", "3 nodes, not 2",
                          "cpu_model of rank 2 'B', not 'A'", HasSubstr("over the nodes")));
  EXPECT_THAT(differences(run_of(4), run_of(2)), ElementsAre("2 ranks, not 4"));
  for (std::string RunData::*const field :
       {&RunData::isoscale_version, &RunData::compiler, &RunData::build_type, &RunData::device,
        &RunData::mpi_library}) {
    RunData other = run_of(4);
    other.*field = "else";
    EXPECT_THAT(differences(run_of(4), other), ElementsAre(HasSubstr("'else'")));
  }
}

TEST(Differences, AreOfSettingsThatBearOnMeasurementAndNotOfJobsAndTheirDevices) {
  RunData earlier = run_of(2), now = run_of(2);
  earlier.environment = {{"OMP_NUM_THREADS", "1"}, {"UCX_TLS", "rc,self"},
                         {"NCCL_PROTO", "LL"},     {"SLURM_JOB_ID", "1"},
                         {"PMIX_RANK", "0"},       {"CUDA_VISIBLE_DEVICES", "0"}};
  now.environment = {{"OMP_NUM_THREADS", "1"}, {"UCX_TLS", "tcp,self"}, {"NCCL_ALGO", "Ring"},
                     {"SLURM_JOB_ID", "2"},    {"SLURM_CPU_BIND", "x"}, {"NCCL_DEBUG", "INFO"}};
  EXPECT_THAT(differences(earlier, now),
              ElementsAre("NCCL_ALGO 'Ring', not unset", "NCCL_PROTO unset, not 'LL'",
                          "UCX_TLS 'tcp,self', not 'rc,self'"));
  EXPECT_THAT(differences(now, now), IsEmpty());
}

/// dp on 1, 2 and 4 ranks.
class ResumedPlan : public testing::Test {
 protected:
  [[nodiscard]] PointData planned(int index) const {
    const plan::PlannedPoint& from = plan_.points[static_cast<std::size_t>(index)];
    PointData point = point_of(index, PointStatus::ok);
    point.workload = "dp";
    point.model = "small";
    point.ranks = from.ranks;
    point.mesh = from.request.mesh;
    return point;
  }

  settings::RunConfig config_ = samples::config_of("dp");
  plan::Plan plan_ = plan::make_plan(config_, samples::site_of(4));
};

TEST_F(ResumedPlan, LacksWhatIsAbsentFailedHungOrHadNoTime) {
  RunData run;
  EXPECT_EQ(missing_points(run, plan_), (Missing{.never_begun = {0, 1, 2}}));
  run.points = {point_of(0, PointStatus::ok), point_of(2, PointStatus::failed, "wrong")};
  EXPECT_EQ(missing_points(run, plan_), (Missing{.never_begun = {1}, .failed = {2}}));
  run.points[1].reason = "hang: rank 1 never answered";
  EXPECT_EQ(missing_points(run, plan_), (Missing{.never_begun = {1}, .hung = {2}}));
  run.points = {point_of(0, PointStatus::skipped, std::string{plan::budget_reason}),
                point_of(1, PointStatus::skipped, "does not divide"), point_of(2, PointStatus::ok)};
  EXPECT_EQ(missing_points(run, plan_), (Missing{.never_begun = {0}}));
}

TEST_F(ResumedPlan, MustHoldTheSamePoints) {
  RunData run;
  run.points = {planned(0), planned(2)};
  EXPECT_THAT(differences(run, plan_), IsEmpty());
  run.points[1].mesh = {.tp = 4};
  EXPECT_THAT(differences(run, plan_), ElementsAre(AllOf(HasSubstr("point 3"), HasSubstr("tp=4"))));
  run.points[1].status = PointStatus::skipped;  // whose mesh is not kept
  EXPECT_THAT(differences(run, plan_), IsEmpty());
  run.points[1].ranks = 3;
  run.points[0].model = "tiny";
  EXPECT_THAT(differences(run, plan_), ElementsAre(HasSubstr("point 1"), HasSubstr("point 3")));
  run.points = {point_of(3, PointStatus::ok)};
  EXPECT_THAT(differences(run, plan_), ElementsAre(HasSubstr("point 4 ")));
}

TEST(ResumptionWarning, NamesPointsAndHosts) {
  RunData now = run_of(4);
  now.created = "2026-01-31T12:34:56Z";
  EXPECT_THAT(resumption_warning(run_of(4), now, {1, 2, 3, 6}),
              AllOf(HasSubstr("2026-01-31"), HasSubstr("points 2-4, 7 "), Not(HasSubstr("node1"))));
  now.rank_facts[3].host = "node3";
  EXPECT_THAT(resumption_warning(run_of(4), now, {4}),
              AllOf(HasSubstr("point 5 "), HasSubstr("node1, node2, node3 instead")));
}

TEST(MovedRun, TakesPartsAlongThatAreNotGone) {
  const testing_support::ScratchDirectory directory, fallback;
  const std::filesystem::path file = directory.path() / "run.h5";
  const RunData header = results::samples::header();
  // Each point is a part of its own.
  RunFile run{
      {file, header, settings::IfExists::refuse, units::Bytes{1}}, file, header, fallback.path()};
  for (const int index : {0, 1, 2}) run.commit(results::samples::point(index));
  std::filesystem::remove(directory.path() / "run.part0001.h5");
  std::filesystem::remove(file);
  std::ofstream{file} << "somebody else's";
  run.commit(results::samples::point(3));
  EXPECT_EQ(run.path(), fallback.path() / "run.h5");
  EXPECT_THAT(mapped(results::read_run(run.path()).points, &PointData::index),
              ElementsAre(0, 2, 3));
  EXPECT_THAT(run.moved(), HasSubstr("2 of its points"));
}

/// Cores of one logical CPU each, as far as nothing else is said.
MachineFacts bound_to(const std::vector<int>& cpus, std::optional<int> cores_of_node) {
  MachineFacts facts;
  facts.host = "made-up";
  facts.cores = cores_of_node;
  facts.bound_cpus = facts.bound_core_ids = cpus;
  return facts;
}

bool share(const std::vector<MachineFacts>& facts, std::vector<int> node_of_rank = {}) {
  node_of_rank.resize(facts.size(), 0);
  std::vector<int> ranks(facts.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return plan::share_cores(ranks, facts, node_of_rank);
}

bool share(const MachineFacts& each, int ranks) {
  return share(std::vector<MachineFacts>(static_cast<std::size_t>(ranks), each));
}

TEST(ShareCores, RanksThatAreMoreThanTheCoresTheyAreBoundTo) {
  EXPECT_TRUE(share(bound_to({0}, 2), 2));
  EXPECT_FALSE(share({bound_to({0}, 2), bound_to({1}, 2)}));
  for (int ranks = 1; ranks <= 4; ++ranks) {
    EXPECT_EQ(share(bound_to({0, 1}, 2), ranks), ranks > 2);
    // If the cores of the node are not known, logical CPUs count.
    EXPECT_EQ(share(bound_to({0, 1, 2}, {}), ranks), ranks > 3);
    // An unknown binding says nothing.
    EXPECT_FALSE(share(bound_to({}, {}), ranks));
    EXPECT_EQ(share(bound_to({}, 2), ranks), ranks > 2);
  }
  EXPECT_FALSE(share({bound_to({0}, 2), bound_to({}, 2)}));
}

TEST(ShareCores, ThreadsOfACoreAndCpusBeyondAQuotaAreNoCores) {
  // Two cores with two hardware threads each: four logical CPUs, and four ranks share.
  MachineFacts threads = bound_to({0, 1, 2, 3}, 2), quota = bound_to({0, 1, 2, 3}, 4);
  threads.bound_core_ids = {0, 1};
  quota.cpu_quota = 2.0;
  for (const MachineFacts& facts : {threads, quota}) {
    EXPECT_FALSE(share(facts, 2));
    EXPECT_TRUE(share(facts, 3));
  }
  EXPECT_FALSE(share({quota, quota, quota}, {0, 1, 0}));
  quota.cpu_quota = 1.5;
  EXPECT_TRUE(share(quota, 2));
  quota.cpu_quota = 0.5;
  EXPECT_TRUE(share(quota, 1));
  // Both threads of core 0 on a node of four cores.
  MachineFacts first = bound_to({0}, 4), second = bound_to({1}, 4);
  first.bound_core_ids = second.bound_core_ids = {0};
  EXPECT_TRUE(share({first, second}));
}

TEST(ShareCores, MasksThatOverlapMayStillSpread) {
  // Only 2 -> CPU 2, 1 -> CPU 1, 0 -> CPU 0 works: whoever came first must give way twice.
  EXPECT_FALSE(share({bound_to({0, 1, 2}, 4), bound_to({0, 1}, 4), bound_to({0}, 4)}));
  // Three ranks on two CPUs between them, though the node has more.
  EXPECT_TRUE(share({bound_to({0, 1}, 4), bound_to({0, 1}, 4), bound_to({1}, 4)}));
}

TEST(ShareCores, NodesAreSeparateAndOnlyTheRanksNamedCount) {
  const MachineFacts unbound = bound_to({0, 1}, 2);
  const std::vector<MachineFacts> facts(4, unbound);
  EXPECT_FALSE(share(facts, {0, 1, 0, 1}));
  EXPECT_TRUE(share(facts, {0, 1, 0, 0}));
  const std::vector<int> nodes(4, 0);
  EXPECT_FALSE(plan::share_cores(std::vector{1, 3}, facts, nodes));
  EXPECT_TRUE(plan::share_cores(std::vector{0, 1, 3}, facts, nodes));
  EXPECT_FALSE(plan::share_cores(std::vector<int>{}, facts, nodes));
}

TEST(RankFacts, TellWhatIsKnownAndNothingElse) {
  MachineFacts known = bound_to({4, 5}, 8);
  known.cpu_model = "CPU";
  known.os = "Linux 6.1";
  known.memory_total = units::Bytes{1024};
  known.cpu_quota = 2.5;
  executor::Description some, other;
  some.detail = "BLAS A";
  some.facts_text = {{"gpu_name", "Some GPU"}, {"cpu_model", "not the device's to say"}};
  some.facts_number = {{"gpu_nvlinks", 18}, {"memory_total", 1}, {"unknown", std::nan("")}};
  other.detail = "BLAS B";
  const std::string mpi = comm::Environment::library_version();
  const std::vector ranks{rank_facts(0, 0, known, some), rank_facts(1, 1, bound_to({}, {}), other)};
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[0].host, "made-up");
  EXPECT_EQ(ranks[1].node, 1);
  EXPECT_THAT(ranks[0].text, ElementsAre(Pair("bound_cpus", "4,5"), Pair("cpu_model", "CPU"),
                                         Pair("cpu_quota", "2.5 CPUs"), Pair("device", "BLAS A"),
                                         Pair("gpu_name", "Some GPU"), Pair("mpi_library", mpi),
                                         Pair("os", "Linux 6.1")));
  EXPECT_THAT(ranks[0].number,
              ElementsAre(Pair("bound_cores", 2), Pair("cores", 8), Pair("cpu_quota", 2.5),
                          Pair("gpu_nvlinks", 18), Pair("memory_total", 1024)));
  EXPECT_THAT(ranks[1].text, ElementsAre(Pair("device", "BLAS B"), Pair("mpi_library", mpi)));
  EXPECT_TRUE(ranks[1].number.empty());
}

TEST(PlannedSite, IsWhereTheRanksAreUnlessMoreArePlanned) {
  plan::Site two_nodes = samples::site_of(2, 1);
  two_nodes.memory_free = {units::Bytes{1}, {}};
  settings::RunConfig config;
  const auto site = [&] { return plan::planned_site(two_nodes, config); };
  EXPECT_EQ(site().node_of_rank, (std::vector{0, 1}));
  config.ranks = {1, 2};
  EXPECT_EQ(site().nodes, plan::Nodes::known);
  EXPECT_EQ(site().memory_free.size(), 2U);
  config.ranks = {4};
  EXPECT_EQ(site().nodes, plan::Nodes::unknown);
  EXPECT_EQ(site().ranks, 4);
  // The facts known of one node are taken for all, and each rank may be alone on its node.
  EXPECT_THAT(site().memory_free, Each(units::Bytes{1}));
  EXPECT_THAT(site().pool_of_rank, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(site().memory_of, plan::MemoryOf::this_machine);
  // Nodes have as many ranks as are named.
  config = {};
  config.ranks_per_node = 2;
  EXPECT_EQ(site().node_of_rank, (std::vector{0, 0}));
  config.ranks = {1, 5};
  EXPECT_EQ(site().node_of_rank, (std::vector{0, 0, 1, 1, 2}));
  EXPECT_EQ(site().nodes, plan::Nodes::known);
  EXPECT_EQ(site().memory_free.size(), 3U);
  EXPECT_EQ(site().pool_of_rank, site().node_of_rank);
}

TEST(PlannedSite, HasAsManyRanksOnAGpuAsTheStartedOnes) {
  plan::Site started = samples::gpu_site_of(4, units::Bytes{2}, 4, 2);
  started.pool_of_rank = {0, 1, 0, 1};
  started.memory_free[1] = units::Bytes{1};
  settings::RunConfig config;
  config.ranks = {8};
  const std::vector<int> apart = plan::planned_site(started, config).pool_of_rank;
  EXPECT_EQ(std::set<int>(apart.begin(), apart.end()).size(), 8U);
  config.ranks_per_node = 4;
  const plan::Site planned = plan::planned_site(started, config);
  EXPECT_THAT(planned.pool_of_rank, ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));
  EXPECT_EQ(planned.memory_free.size(), 4U);
}

}  // namespace
}  // namespace isoscale::runner
