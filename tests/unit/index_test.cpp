// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/catalog/index.hpp"
#include "analysis/render/render.hpp"
#include "analysis_test.hpp"
#include "launch_samples.hpp"

namespace isoscale::analysis {
namespace {

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
}  // namespace isoscale::analysis
