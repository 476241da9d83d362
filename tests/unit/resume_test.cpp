// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "planned_runs.hpp"
#include "results/reader/reader.hpp"
#include "results_samples.hpp"
#include "runner/plan/schedule.hpp"
#include "runner/resume.hpp"
#include "runner/run_file.hpp"

namespace isoscale::runner {
namespace {

using results::PointData;
using results::PointStatus;
using results::RunData;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
  for (results::RankFacts& rank : now.rank_facts) {
    rank.host += "x";
    rank.text["gpu_uuid"] += "x";
  }
  EXPECT_THAT(differences(run_of(4), now), IsEmpty());
}

TEST(Differences, AreAllNamed) {
  RunData now = run_of(4);
  now.git_hash = "def";
  now.nodes = 3;
  now.rank_facts[2].text["cpu_model"] = "B";
  now.rank_facts[3].text["cpu_model"] = "C";
  now.rank_facts[3].node = 2;
  EXPECT_THAT(
      differences(run_of(4), now),
      ElementsAre("git hash 'def', not 'abc'", "3 nodes, not 2", "cpu_model of rank 2 'B', not 'A'",
                  "ranks are dealt out over the nodes in another way"));
  EXPECT_THAT(differences(run_of(4), run_of(2)), ElementsAre("2 ranks, not 4"));
  for (std::string RunData::*const field :
       {&RunData::isoscale_version, &RunData::compiler, &RunData::build_type, &RunData::device,
        &RunData::mpi_library}) {
    RunData other = run_of(4);
    other.*field = "else";
    EXPECT_THAT(differences(run_of(4), other), ElementsAre(HasSubstr("'else'")));
  }
}

TEST(Differences, AreOfSettingsThatBearOnMeasurement) {
  RunData earlier = run_of(2), now = run_of(2);
  earlier.environment = {{"OMP_NUM_THREADS", "1"}, {"UCX_TLS", "rc,self"}, {"NCCL_PROTO", "LL"}};
  now.environment = {{"OMP_NUM_THREADS", "1"}, {"UCX_TLS", "tcp,self"}, {"NCCL_ALGO", "Ring"}};
  EXPECT_THAT(differences(earlier, now),
              ElementsAre("NCCL_ALGO 'Ring', not unset", "NCCL_PROTO unset, not 'LL'",
                          "UCX_TLS 'tcp,self', not 'rc,self'"));
  EXPECT_THAT(differences(now, now), IsEmpty());
}

TEST(Differences, AreNoneBetweenJobsAndTheDevicesTheyWereDealt) {
  RunData earlier = run_of(2), now = run_of(2);
  earlier.environment = {{"SLURM_JOB_ID", "1"}, {"PMIX_RANK", "0"}, {"CUDA_VISIBLE_DEVICES", "0"}};
  now.environment = {{"SLURM_JOB_ID", "2"}, {"SLURM_CPU_BIND", "x"}, {"NCCL_DEBUG", "INFO"}};
  EXPECT_THAT(differences(earlier, now), IsEmpty());
}

TEST(Differences, ThatAreFoundAreRefused) {
  EXPECT_NO_THROW(require_no_differences("run.h5", {}));
  try {
    require_no_differences("run.h5", std::vector<std::string>{"one thing", "another"});
    FAIL();
  } catch (const base::UsageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("run.h5"), HasSubstr("one thing; another")));
  }
  EXPECT_NO_THROW(require_ranks(run_of(4), "run.h5", 4));
  EXPECT_THROW(require_ranks(run_of(4), "run.h5", 3), base::UsageError);
}

/// dp on 1, 2 and 4 ranks.
class ResumedPlan : public testing::Test {
 protected:
  /// Returns the point as the plan has it.
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
              AllOf(HasSubstr("2026-01-31"), HasSubstr("points 2-4, 7 "),
                    testing::Not(HasSubstr("node1"))));
  now.rank_facts[3].host = "node3";
  EXPECT_THAT(
      resumption_warning(run_of(4), now, {4}),
      AllOf(HasSubstr("point 5 "), HasSubstr("on node1, node2, node3 instead of node1, node2")));
}

/// A run, each point of which is a part of its own.
class MovedRun : public testing::Test {
 protected:
  [[nodiscard]] std::vector<int> indices_moved() const {
    std::vector<int> result;
    for (const auto& point : results::read_run(run_.path()).points) result.push_back(point.index);
    return result;
  }

  results::samples::Directory directory_, fallback_;
  std::filesystem::path file_ = directory_.path() / "run.h5";
  RunFile run_{{file_, results::samples::header(), settings::IfExists::refuse, units::Bytes{1}},
               file_,
               results::samples::header(),
               fallback_.path()};
};

TEST_F(MovedRun, TakesPartsAlong) {
  run_.commit(results::samples::point(0));
  run_.commit(results::samples::point(1));
  std::filesystem::remove(file_);
  std::ofstream{file_} << "somebody else's";
  run_.commit(results::samples::point(2));
  EXPECT_EQ(run_.path(), fallback_.path() / "run.h5");
  EXPECT_THAT(indices_moved(), testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(run_.moved(), HasSubstr("has 2 of its points"));
}

TEST_F(MovedRun, LeavesOutOnlyPartsThatAreGone) {
  run_.commit(results::samples::point(0));
  run_.commit(results::samples::point(1));
  run_.commit(results::samples::point(2));
  std::filesystem::remove(directory_.path() / "run.part0001.h5");
  std::filesystem::remove(file_);
  std::ofstream{file_} << "somebody else's";
  run_.commit(results::samples::point(3));
  EXPECT_THAT(indices_moved(), testing::ElementsAre(0, 2, 3));
}

}  // namespace
}  // namespace isoscale::runner
