// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/merge/join.hpp"

#include "analysis/identity.hpp"
#include "launch_samples.hpp"
#include "reported.hpp"

namespace isoscale::analysis {
namespace {

using samples::add;
using samples::JoinedLaunches;
using samples::launch;
using samples::launch_of;

std::vector<int> rank_counts(const merge::JoinedCurve& joined) {
  return mapped(joined.curve.points, [](const PointReport& point) { return point.data->ranks; });
}

/// Why two launches stay apart after a change of the second; "joined" if they do not.
std::string why_apart(const std::function<void(results::RunData&)>& change,
                      const results::RunData& first = launch_of("a", 1, 2, 0.2),
                      const results::RunData& second = launch_of("b", 1, 2, 0.2)) {
  std::vector<results::RunData> runs{first, second};
  change(runs[1]);
  const merge::Joined joined = JoinedLaunches{std::move(runs)}.joined;
  if (joined.curves.size() == 1) return "joined";
  return joined.curves[0].apart.empty() ? "other experiments" : joined.curves[0].apart[0];
}

TEST(Join, FilesOfOneRankCountEachMakeACurve) {
  const JoinedLaunches of{
      {launch_of("c", 4, 4, 0.125), launch_of("a", 1, 4, 0.4), launch_of("b", 2, 4, 0.2)}};
  ASSERT_EQ(of.joined.curves.size(), 1U);
  const merge::JoinedCurve& joined = of.joined.curves[0];
  EXPECT_THAT(rank_counts(joined), ElementsAre(4, 8, 16));
  EXPECT_THAT(joined.curve.title, EndsWith("strong scaling, packed"));
  EXPECT_EQ(joined.curve.baseline, 4) << "which is in another file";
  EXPECT_NEAR(*joined.curve.points[1].efficiency, 1.0, 1e-12);
  EXPECT_NEAR(*joined.curve.points[2].efficiency, 0.8, 1e-12);
  EXPECT_NEAR(*joined.curve.points[2].speedup, 12.8, 1e-12);
  EXPECT_FALSE(merge::spread_of(joined.curve.points[0])) << "one launch";
  EXPECT_FALSE(joined.curve.points[2].step_time->lower) << "the interval is that of its steps";
}

TEST(Join, APointOfSeveralLaunchesHasTheirMedianAndSpread) {
  const JoinedLaunches of{{launch_of("a", 1, 2, 0.38), launch_of("b", 1, 2, 0.40),
                           launch_of("c", 1, 2, 0.44), launch_of("d", 2, 2, 0.25)}};
  ASSERT_EQ(of.joined.curves.size(), 1U);
  const merge::JoinedCurve& joined = of.joined.curves[0];
  EXPECT_THAT(joined.launches, ElementsAre(SizeIs(3), SizeIs(1)));
  const PointReport& two = joined.curve.points[0];
  const double median = of.reports[1].curves[0].points[0].step_time->median;
  EXPECT_EQ(two.step_time->median, median);
  EXPECT_EQ(two.step_time->samples, 3U);
  EXPECT_NEAR(*merge::spread_of(two), 0.15, 1e-12);
  ASSERT_TRUE(two.step_time->lower);
  EXPECT_EQ(two.data, &of.runs[1].points[0]) << "the launch nearest to the median";
  EXPECT_NEAR(*two.throughput, 1024 / median, 1e-9);
  EXPECT_NEAR(*joined.curve.points[1].efficiency, 0.4 / 0.25 / 2, 1e-12);
}

TEST(Join, PointsThatAreNotCleanAreListedAndNotMixedIn) {
  auto runs = mapped(std::array{"ok", "shared", "wrong", "failed"},
                     [](const char* id) { return launch_of(id, 1, 2, 0.2); });
  runs[1].points[0].labels = {"oversubscribed"};
  for (auto& step : runs[1].points[0].step_times) step = {9, 9};
  runs[2].points[0].verified = false;
  runs[3].points[0].status = results::PointStatus::failed;
  runs[3].points[0].reason = "no answer";
  const JoinedLaunches of{std::move(runs)};
  ASSERT_EQ(of.joined.curves.size(), 1U);
  const merge::JoinedCurve& joined = of.joined.curves[0];
  EXPECT_THAT(joined.launches, ElementsAre(SizeIs(1)));
  EXPECT_NEAR(joined.curve.points[0].step_time->median, 0.2, 1e-3);
  EXPECT_THAT(mapped(joined.left_out, &merge::LeftOut::reason),
              ElementsAre("oversubscribed", HasSubstr("not verify"), "failed: no answer"));
  const JoinedLaunches none{{of.runs[1]}};
  ASSERT_EQ(none.joined.curves.size(), 1U);
  EXPECT_THAT(none.joined.curves[0].curve.points, IsEmpty());
  EXPECT_EQ(none.joined.curves[0].left_out.size(), 1U);
  EXPECT_FALSE(none.joined.curves[0].curve.baseline);
}

TEST(Join, UnlikeMachinesMakeCurvesOfTheirOwnAndSaySo) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 0.2), launch_of("b", 2, 2, 0.1),
                                     launch_of("c", 2, 2, 0.1)};
  for (auto& facts : runs[1].rank_facts) facts.text["cpu_model"] = "Intel Xeon 8480";
  runs[2].mpi_library = "MPICH 4.1";
  const JoinedLaunches of{std::move(runs)};
  ASSERT_EQ(of.joined.curves.size(), 3U);
  EXPECT_THAT(of.joined.curves[0].curve.title,
              AllOf(HasSubstr("CPU AMD EPYC 7763"), EndsWith("Open MPI 4.1.4, launch 1")));
  EXPECT_THAT(of.joined.curves[1].curve.title,
              AllOf(HasSubstr("CPU Intel Xeon 8480"), EndsWith(", launch 2")));
  EXPECT_THAT(of.joined.curves[2].curve.title, EndsWith("MPICH 4.1, launch 3"));
  EXPECT_THAT(of.joined.curves[0].apart,
              ElementsAre(HasSubstr("launch 2: CPU: AMD"), HasSubstr("launch 3: MPI: Open")));
  EXPECT_EQ(of.joined.curves[1].fingerprint, of.joined.curves[0].fingerprint);
}

TEST(Join, MachinesAndExperimentsThatDifferStayApart) {
  using results::PointData;
  using results::RunData;
  for (const auto field : {&RunData::isoscale_version, &RunData::device, &RunData::device_detail}) {
    EXPECT_NE(why_apart([&](RunData& run) { run.*field = "cuda"; }), "joined");
  }
  for (const auto field : {&PointData::model, &PointData::workload, &PointData::dtype,
                           &PointData::scaling, &PointData::placement}) {
    EXPECT_NE(why_apart([&](RunData& run) { run.points[0].*field = "weak"; }), "joined");
  }
  for (const char* const fact :
       {"gpu_name", "gpu_driver", "cuda_driver", "cuda_runtime", "cublas", "nccl", "gpu_uuid"}) {
    const std::string why = why_apart([&](auto& run) { run.rank_facts[0].text[fact] = "1.2.3"; });
    EXPECT_EQ(why == "joined", std::string{fact} == "gpu_uuid") << fact;
  }
  EXPECT_NE(why_apart([](auto& run) { run.points[0].graph = "on"; }), "joined");
  EXPECT_NE(why_apart([](auto& run) { run.points[0].options["batch"] = "32"; }), "joined");
  EXPECT_NE(why_apart([](auto& run) { run.points[0].model_shape["layers"] = "5"; }), "joined");
  EXPECT_EQ(why_apart([](auto& run) { run.rank_facts[0].host = "other"; }), "joined");
  EXPECT_EQ(why_apart([](auto& run) { run.created = "2030-01-01T00:00:00Z"; }), "joined");
  const auto scaled = [](RunData& run) {
    run.points[0].seed = 77;
    run.points[0].options["microbatch"] = "1";  // strong scaling itself changes it
  };
  EXPECT_EQ(why_apart(scaled, launch_of("a", 1, 2, 0.2), launch_of("b", 2, 2, 0.1)), "joined");
}

TEST(Join, WeakScalingComparesTheModelAsItWasBeforeItGrew) {
  const auto weak = [](const mesh::Shape& shape) {
    results::RunData run = launch("run" + std::to_string(shape.size()), 1, shape.size());
    results::PointData& point = add(run, shape, 0.1 * shape.size());
    point.scaling = "weak";
    point.model_shape = {{"hidden", "64"},
                         {"heads", std::to_string(8 * shape.tp)},
                         {"sequence", std::to_string(16 * shape.cp)}};
    point.options["experts"] = std::to_string(2 * shape.ep);
    return run;
  };
  for (const auto axis : {&mesh::Shape::tp, &mesh::Shape::cp, &mesh::Shape::ep}) {
    std::vector<results::RunData> runs;
    for (const int ranks : {2, 4, 8}) {
      mesh::Shape shape;
      shape.*axis = ranks;
      runs.push_back(weak(shape));
    }
    const JoinedLaunches of{std::move(runs)};
    ASSERT_EQ(of.joined.curves.size(), 1U);
    EXPECT_THAT(rank_counts(of.joined.curves[0]), ElementsAre(2, 4, 8));
    EXPECT_EQ(of.joined.curves[0].experiment.numbers.at("heads"), "8");
    EXPECT_LT(*of.joined.curves[0].curve.points[2].efficiency, 0.5);
  }
  // More heads, a longer sequence or more experts on one rank are other work.
  for (const int change : {0, 1, 2}) {
    std::vector<results::RunData> others{weak({.tp = 2}), weak({.tp = 4})};
    results::PointData& point = others[1].points[0];
    if (change == 0) point.model_shape["heads"] = "16";
    if (change == 1) point.model_shape["sequence"] = "32";
    if (change == 2) point.options["experts"] = "4";
    EXPECT_EQ(JoinedLaunches{std::move(others)}.joined.curves.size(), 2U) << change;
  }
}

TEST(Join, MeshesOfOneRankCountStayOnTheCurvesTheyGoWith) {
  std::vector<results::RunData> runs{launch("a", 1, 2), launch("b", 1, 4)};
  add(runs[0], {.tp = 2}, 0.2);
  add(runs[0], {.dp = 2}, 0.2);
  add(runs[1], {.tp = 4}, 0.1);
  add(runs[1], {.dp = 4}, 0.1);
  const JoinedLaunches of{std::move(runs)};
  ASSERT_EQ(of.joined.curves.size(), 2U);
  for (const merge::JoinedCurve& joined : of.joined.curves) {
    EXPECT_THAT(rank_counts(joined), ElementsAre(2, 4));
    EXPECT_EQ(joined.curve.points[0].data->mesh.tp == 2, joined.curve.points[1].data->mesh.tp == 4);
  }
  EXPECT_THAT(of.joined.curves[0].curve.title, EndsWith("packed, tp=4"));
  EXPECT_THAT(of.joined.curves[1].curve.title, EndsWith("packed, dp=4"));
}

TEST(Join, AsManyRanksOnMoreNodesAreAnotherPoint) {
  const JoinedLaunches of{{launch_of("a", 1, 4, 0.2), launch_of("b", 2, 2, 0.3)}};
  ASSERT_EQ(of.joined.curves.size(), 2U);
  EXPECT_THAT(of.joined.curves[0].apart,
              ElementsAre(AllOf(HasSubstr("launch 2: 4 ranks"), HasSubstr("node here, on 2"))));
  EXPECT_THAT(of.joined.curves[0].curve.title, EndsWith("1 node, launch 1"));
  EXPECT_THAT(of.joined.curves[1].curve.title, EndsWith("2 nodes, launch 2"));
}

TEST(Join, TheSameTwiceInOneLaunchIsNoSecondLaunch) {
  results::RunData run = launch("a", 1, 2);
  add(run, {.dp = 2}, 0.2);
  add(run, {.dp = 2}, 0.3);
  const JoinedLaunches of{{run}};
  ASSERT_EQ(of.joined.curves.size(), 2U);
  EXPECT_THAT(of.joined.curves[0].launches, ElementsAre(SizeIs(1)));
  for (const auto& titles : {mapped(of.reports[0].curves, &Curve::title),
                             mapped(of.joined.curves, [](auto& at) { return at.curve.title; })}) {
    EXPECT_THAT(titles, ElementsAre(EndsWith("packed"), EndsWith("packed, repeat 2")));
  }
}

TEST(Join, SaysWhereEachPointWent) {
  results::RunData other = launch_of("b", 1, 2, 0.3);
  other.points[0].labels = {"shared-gpu"};
  const JoinedLaunches of{{launch_of("a", 1, 2, 0.2), other}};
  const auto first = merge::place_of(of.joined, of.reports[0].curves[0].points[0]);
  EXPECT_EQ(first.value().joined, &of.joined.curves[0].curve.points[0]);
  EXPECT_EQ(first->launches, 1U);
  const auto second = merge::place_of(of.joined, of.reports[1].curves[0].points[0]);
  EXPECT_EQ(second.value().joined, nullptr);
  EXPECT_EQ(second->left_out, "shared-gpu");
  EXPECT_FALSE(merge::place_of(of.joined, PointReport{}));
}

/// FNV-1a, 64 bits, of 6 empty texts and 3 counts of 0, and of "host", "w", "m", "f32", "weak",
/// "packed", "0", "1", "layers", "2" and "0", each followed by a zero byte, computed by another
/// program.
TEST(Fingerprint, StaysFromVersionToVersionAndTellsExperimentsApart) {
  Experiment of{.workload = "w",
                .model = "m",
                .dtype = "f32",
                .scaling = "weak",
                .placement = "packed",
                .numbers = {{"layers", "2"}}};
  const std::string first = "aa33041758872c0d";
  EXPECT_EQ(fingerprint({}, ""), "f7a947d2e2e8d065");
  EXPECT_EQ(fingerprint(of, "host"), first);
  EXPECT_NE(fingerprint(of, "cuda"), first);
  of.numbers["layers"] = "5";
  EXPECT_NE(fingerprint(of, "host"), first);
}

TEST(WithoutCopies, KeepsTheMostCompleteOfALaunchAndAllWithoutAnId) {
  RunFiles given;
  for (const char* const id : {"a", "b", "a", "a", "", ""}) {
    given.runs.push_back(launch_of(id, 1, 2, 0.1));
  }
  given.files = {"a1.h5", "b.h5", "a2.h5", "a2.h5", "c.h5", "d.h5"};
  given.runs[0].complete = false;
  const RunFiles kept = without_copies(std::move(given));
  EXPECT_THAT(kept.files, ElementsAre("a2.h5", "b.h5", "c.h5", "d.h5"));
  EXPECT_TRUE(kept.runs.at(0).complete);
  EXPECT_THAT(kept.warnings, ElementsAre(AllOf(HasSubstr("a1.h5 holds run a"), HasSubstr("a2.h5")),
                                         HasSubstr("a2.h5 was given more")));
}

TEST(WithoutCopies, CountsWhatWasMeasuredAndNotWhatWasLeftOut) {
  RunFiles given{.runs = {launch_of("a", 1, 2, 0.1), launch_of("a", 1, 2, 0.1)},
                 .files = {"before.h5", "after.h5"}};
  for (results::PointData& point : given.runs[0].points) {
    point.status = results::PointStatus::skipped;  // for want of time; measured when resumed
  }
  EXPECT_THAT(without_copies(std::move(given)).files, ElementsAre("after.h5"));
}

TEST(Settings, WhatALaunchWasToldKeepsApartAndIsNamed) {
  const std::string plain = "fill = \"idle\"\nblas_threads = 1\n";
  results::RunData first = launch_of("a", 1, 2, 0.2);
  first.config_toml = plain;
  using Case = std::pair<std::string, std::string>;
  for (const Case& at : std::vector<Case>{
           {plain + "output = \"other.h5\"\nprecision = \"0.1\"\n", "joined"},
           {"fill = \"replicas\"\n", "fill: idle here, replicas there"},
           {plain + "graph = true\n", "graph: off here, on there"},
           {"blas_threads = 4\n", "blas_threads: 1 here, 4 there"},
           {plain + "host_streams = \"threads\"\n", "host_streams: auto here, threads there"},
           {"gemm_algorithms = \"a.h5\"\n", "gemm_algorithms: chosen here, a.h5 there"}}) {
    EXPECT_THAT(why_apart([&](auto& run) { run.config_toml = at.first; }, first),
                EndsWith(at.second));
  }
  EXPECT_NE(why_apart([](auto& run) { run.config_toml = ""; }, first), "joined") << "not known";
  results::RunData unreadable;
  unreadable.config_toml = "fill = [";
  EXPECT_THAT(settings_of(unreadable), IsEmpty());
  std::vector<results::RunData> runs{first, launch_of("b", 1, 2, 0.2)};
  runs[1].config_toml = "fill = \"replicas\"\n";
  const merge::Joined filled = JoinedLaunches{std::move(runs)}.joined;
  EXPECT_THAT(filled.curves[1].curve.title, HasSubstr("packed, fill=replicas"));
  EXPECT_NE(filled.curves[0].fingerprint, filled.curves[1].fingerprint);
}

TEST(Settings, OfCommunicationAndThreadsKeepApartAndJobsDoNot) {
  results::RunData first = launch_of("a", 1, 2, 0.2);
  first.environment = {{"OMPI_MCA_rmaps_base_mapping_policy", "ppr:2:node"}};
  const auto why = [&](const char* name) {
    return why_apart(
        [name](auto& run) {
          run.environment = {{"OMPI_MCA_rmaps_base_mapping_policy", "ppr:4:node"}, {name, "x"}};
        },
        first);
  };
  for (const char* const name : {"NCCL_ALGO", "UCX_TLS", "OMPI_MCA_btl", "FI_PROVIDER",
                                 "OMP_NUM_THREADS", "CUDA_DEVICE_MAX_CONNECTIONS"}) {
    EXPECT_EQ(why(name), "launch 2: " + std::string{name} + ": unset here, x there");
  }
  for (const char* const name : {"SLURM_JOB_ID", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE",
                                 "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG", "NCCL_HOSTID"}) {
    EXPECT_EQ(why(name), "joined") << name;
  }
}

}  // namespace
}  // namespace isoscale::analysis
