// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/experiment_and_machine_identity.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis::merge {
namespace {

/// Why two launches stay apart after a change of the second; "joined" if they do not.
std::string why_apart(const std::function<void(results::RunData&)>& change,
                      const results::RunData& first = launch_of("a", 1, 2, 0.2),
                      const results::RunData& second = launch_of("b", 1, 2, 0.2)) {
  std::vector<results::RunData> runs{first, second};
  change(runs[1]);
  const Joined joined = JoinedLaunches{std::move(runs)}.joined;
  if (joined.curves.size() == 1) return "joined";
  return joined.curves[0].apart.empty() ? "other experiments" : joined.curves[0].apart[0];
}

TEST(Join, FilesOfOneRankCountEachMakeACurve) {
  const JoinedLaunches of{
      {launch_of("c", 4, 4, 0.125), launch_of("a", 1, 4, 0.4), launch_of("b", 2, 4, 0.2)}};
  ASSERT_EQ(of.joined.curves.size(), 1U);
  const JoinedCurve& joined = of.joined.curves[0];
  EXPECT_THAT(rank_counts(joined.curve), ElementsAre(4, 8, 16));
  EXPECT_THAT(joined.curve.title, EndsWith("strong scaling, packed"));
  EXPECT_EQ(joined.curve.baseline, 4) << "which is in another file";
  EXPECT_NEAR(*joined.curve.points[1].efficiency, 1.0, 1e-12);
  EXPECT_NEAR(*joined.curve.points[2].efficiency, 0.8, 1e-12);
  EXPECT_NEAR(*joined.curve.points[2].speedup, 12.8, 1e-12);
  EXPECT_FALSE(spread_of(joined.curve.points[0])) << "one launch";
  EXPECT_FALSE(joined.curve.points[2].step_time->lower) << "the interval is that of its steps";
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
  const JoinedCurve& joined = of.joined.curves[0];
  EXPECT_THAT(joined.launches, ElementsAre(SizeIs(1)));
  EXPECT_NEAR(joined.curve.points[0].step_time->median, 0.2, 1e-3);
  EXPECT_THAT(mapped(joined.left_out, &LeftOut::reason),
              ElementsAre("oversubscribed", HasSubstr("not verify"), "failed: no answer"));
  const JoinedLaunches none{{of.runs[1]}};
  ASSERT_EQ(none.joined.curves.size(), 1U);
  EXPECT_THAT(none.joined.curves[0].curve.points, IsEmpty());
  EXPECT_EQ(none.joined.curves[0].left_out.size(), 1U);
  EXPECT_FALSE(none.joined.curves[0].curve.baseline);
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
    EXPECT_THAT(rank_counts(of.joined.curves[0].curve), ElementsAre(2, 4, 8));
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
  for (const JoinedCurve& joined : of.joined.curves) {
    EXPECT_THAT(rank_counts(joined.curve), ElementsAre(2, 4));
    EXPECT_EQ(joined.curve.points[0].data->mesh.tp == 2, joined.curve.points[1].data->mesh.tp == 4);
  }
  EXPECT_THAT(of.joined.curves[0].curve.title, EndsWith("packed, tp=4"));
  EXPECT_THAT(of.joined.curves[1].curve.title, EndsWith("packed, dp=4"));
}

TEST(Join, AsManyRanksOnMoreNodesAreAnotherPoint) {
  const JoinedLaunches of{{launch_of("a", 1, 4, 0.2), launch_of("b", 2, 2, 0.3)}};
  ASSERT_EQ(of.joined.curves.size(), 2U);
  EXPECT_THAT(of.joined.curves[0].apart,
              ElementsAre(AllOf(HasSubstr("launch 2: 4 ranks"), HasSubstr("node here and on 2"))));
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
  const auto first = place_of(of.joined, of.reports[0].curves[0].points[0]);
  EXPECT_EQ(first.value().joined, &of.joined.curves[0].curve.points[0]);
  EXPECT_EQ(first->launches, 1U);
  const auto second = place_of(of.joined, of.reports[1].curves[0].points[0]);
  EXPECT_EQ(second.value().joined, nullptr);
  EXPECT_EQ(second->left_out, "shared-gpu");
  EXPECT_FALSE(place_of(of.joined, PointReport{}));
}

/// FNV-1a, 64 bits, of 6 empty texts and 3 counts of 0, and of "host", "w", "m", "f32", "weak",
/// "packed", "0", "1", "layers", "2", "0", each followed by a zero byte, hashed by another program.
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
  const Joined filled = JoinedLaunches{std::move(runs)}.joined;
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

catalog::IndexRun indexed(const results::RunData& run, const std::string& file = "a.h5") {
  return catalog::index_run(make_report(run, file, {}));
}

TEST(Index, HostsWithNumbersAreShortened) {
  EXPECT_EQ(catalog::shorten_hosts({"node0001", "node0002", "node0003", "node0007", "login"}),
            "login, node[0001-0003,0007]");
  EXPECT_EQ(catalog::shorten_hosts({"n1.cluster", "n2.cluster", "n10.cluster"}), "n[1-2], n10");
  EXPECT_EQ(catalog::shorten_hosts({"n1", "n3", "n5", "n7", "n9"}), "n[1,3,5,7] and 1 more");
  EXPECT_EQ(catalog::shorten_hosts({}), "");
  EXPECT_EQ(catalog::shorten_hosts({"999999999999999999999999"}), "999999999999999999999999");
}

TEST(Index, TakesTheLargestPointWithAThroughput) {
  results::RunData run = launch("a", 1, 8);
  add(run, {.dp = 1}, 0.080);
  add(run, {.dp = 4}, 0.025);
  add(run, {.dp = 8}, 0.010).status = results::PointStatus::failed;
  const catalog::IndexRun of = indexed(run);
  ASSERT_EQ(of.experiments.size(), 1U);
  EXPECT_EQ(of.experiments[0].ranks, 4);
  EXPECT_NEAR(*of.experiments[0].throughput, 1024 / 0.025, 0.002 * 1024 / 0.025);
  EXPECT_NEAR(*of.experiments[0].efficiency, 0.080 / 0.025 / 4, 0.002);
  EXPECT_EQ(of.experiments[0].ok, 2);
  EXPECT_EQ(of.experiments[0].failed, 1);
}

TEST(Index, VerifiedIsOfAllThatWasPlayed) {
  results::RunData run = launch("a", 1, 4);
  add(run, {.dp = 1}, 0.04);
  add(run, {.dp = 2}, 0.02).verified.reset();
  EXPECT_EQ(indexed(run).experiments[0].verified, std::nullopt);
  run.points[1].status = results::PointStatus::skipped;
  EXPECT_EQ(indexed(run).experiments[0].verified, true);
  add(run, {.dp = 4}, 0.01).verified = false;
  EXPECT_EQ(indexed(run).experiments[0].verified, false);
}

TEST(Index, MachinesAreToldApartAndTrendsKeepToThem) {
  results::RunData other = launch_of("c", 1, 4, 0.01);
  for (auto& facts : other.rank_facts) facts.text["cpu_model"] = "Intel Xeon 8480";
  std::vector<catalog::IndexRun> runs{indexed(launch_of("a", 1, 4, 0.04)),
                                      indexed(launch_of("b", 1, 4, 0.02)), indexed(other),
                                      indexed(launch_of("d", 2, 4, 0.01))};
  runs[0].created = "2026-02-01";
  const catalog::Index index = catalog::make_index(runs);
  ASSERT_EQ(index.machines.size(), 3U);
  EXPECT_THAT(index.machines[0].runs, ElementsAre(1U, 0U)) << "by date";
  ASSERT_EQ(index.machines[0].trends.size(), 1U);
  const catalog::IndexTrend& trend = index.machines[0].trends[0];
  EXPECT_NEAR(trend.last / trend.first, 0.5, 1e-9);
  EXPECT_NEAR(trend.median / trend.first, 0.75, 1e-9);
  EXPECT_NEAR(*trend.spread, 0.5 / 0.75, 1e-9);
  const render::IndexReport report{.index = index};
  EXPECT_THAT(render::render_index_text(report),
              AllOf(HasSubstr("throughput over time"),
                    testing::ContainsRegex("4 runs on 3 machines, 2025-03-01 to 2026-02-01")));
  const json document = json::parse(render::render_index_json(report));
  EXPECT_EQ(document["machines"][0]["throughput_over_time"].size(), 1U);
  // A machine is one however many ranks were started, with a trend for each rank count.
  const catalog::Index counts = catalog::make_index(
      {indexed(launch_of("a", 1, 2, 0.04)), indexed(launch_of("b", 1, 4, 0.02))});
  ASSERT_EQ(counts.machines.size(), 1U);
  EXPECT_THAT(counts.machines[0].runs, ElementsAre(0U, 1U));
  EXPECT_EQ(counts.machines[0].trends.size(), 2U);
  // Points with a label are no part of it.
  results::RunData clean = launch_of("a", 1, 4, 0.04), shared = launch_of("b", 1, 4, 0.01);
  shared.points[0].labels = {"oversubscribed"};
  const catalog::Index labelled = catalog::make_index({indexed(clean), indexed(shared)});
  ASSERT_EQ(labelled.machines.size(), 1U);
  EXPECT_THAT(labelled.machines[0].trends[0].runs, ElementsAre(0U));
  EXPECT_THAT(render::render_index_text(render::IndexReport{.index = labelled}),
              HasSubstr("oversubscribed"));
}

TEST(Index, AnOptionThatAnOldFileLacksCountsAsItsDefault) {
  std::vector<results::RunData> runs{launch_of("old", 1, 4, 0.04), launch_of("new", 1, 4, 0.02),
                                     launch_of("other", 1, 4, 0.01)};
  runs[0].points[0].options.erase("overlap");
  runs[1].points[0].options["gather"] = "step_end";
  runs[2].points[0].options["overlap"] = "off";
  const auto of = mapped(runs, [](const results::RunData& run) { return indexed(run); });
  EXPECT_EQ(of[0].experiments.at(0).fingerprint, of[1].experiments.at(0).fingerprint);
  EXPECT_NE(of[0].experiments.at(0).fingerprint, of[2].experiments.at(0).fingerprint);
  Experiment without = of[1].experiments.at(0).experiment;
  without.options.erase("overlap");  // as if this version did not have it
  EXPECT_EQ(fingerprint(without, of[1].device), of[1].experiments.at(0).fingerprint);
  const catalog::Index index = catalog::make_index(of);
  ASSERT_EQ(index.machines.size(), 1U);
  ASSERT_EQ(index.machines[0].trends.size(), 2U);
  for (const catalog::IndexTrend& trend : index.machines[0].trends) {
    EXPECT_THAT(trend.title, HasSubstr(trend.runs.size() == 2 ? "overlap=on" : "overlap=off"));
  }
}

TEST(Index, ARunThatWasKilledCountsThePointsThatItWasToMeasure) {
  results::RunData run = launch_of("a", 1, 4, 0.04);
  run.complete = false;
  for (const auto& [planned, shown] : {std::pair{15, "1 of 15"}, {0, "1 of 1"}}) {
    run.planned = planned;
    const render::IndexReport report{.index = catalog::make_index({indexed(run)}), .warnings = {}};
    EXPECT_THAT(render::render_index_text(report), HasSubstr(shown));
    const json of = json::parse(render::render_index_json(report))["index"][0]["planned"];
    EXPECT_EQ(of, planned == 0 ? json{} : json(planned));
  }
}

TEST(Index, HostileTextIsEscaped) {
  const render::IndexReport report{.index = catalog::make_index({indexed(hostile_run(), hostile)}),
                                   .warnings = {hostile}};
  for (const std::string& text :
       {render::render_index_text(report), render::render_index_markdown(report),
        render::render_index_csv(report), render::render_index_json(report)}) {
    EXPECT_THAT(text, Not(AnyOf(HasSubstr("\x1b"), HasSubstr("\xe2\x80\xae"))));
  }
  EXPECT_THAT(render::render_index_csv(report), Not(HasSubstr("\n=cmd")));
}

}  // namespace
}  // namespace isoscale::analysis::merge
