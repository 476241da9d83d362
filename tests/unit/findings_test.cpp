// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fstream>
#include <utility>

#include "analysis/advice/findings.hpp"
#include "analysis/advice/rules.hpp"
#include "analysis/render/report_parts.hpp"
#include "findings_samples.hpp"
#include "launch_samples.hpp"

namespace isoscale::analysis {
namespace {

/// Pipelines of 2, 4 and 8 stages with 8 microbatches.
results::RunData pipelines() {
  results::RunData run = samples::run({pipeline(2, 8), pipeline(4, 8), pipeline(8, 8)});
  for (int i = 0; i < 3; ++i) run.points[static_cast<std::size_t>(i)].index = i;
  return run;
}

TEST(Findings, AreOneForAllPointsOfACurve) {
  const auto all = findings_of(pipelines());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].ranks, (std::vector{2, 4, 8}));
  // The gravest stands for all.
  EXPECT_DOUBLE_EQ(all[0].severity.value(), 7.0 / 15);
  EXPECT_THAT(all[0].sentence, AllOf(HasSubstr("46.7%"), EndsWith("(on 8)")));
  EXPECT_EQ(all[0].evidence.front().ranks, 8);
  EXPECT_EQ(all[0].evidence.back().ranks, 2);
}

TEST(Findings, AreNoneOfPointsThatTellNothingOfTheMachineAndTheseAreNamed) {
  results::RunData run = pipelines();
  EXPECT_TRUE(advice::left_out_of(make_report(run, "a.h5", {})).empty());
  run.points.push_back(pipeline(16, 8));
  run.points.back().index = 3;
  run.points[0].labels = run.points[3].labels = {"shared-gpu"};
  run.points[1].labels = {"injected"};
  run.points[2].labels = {"oversubscribed", "injected"};
  EXPECT_TRUE(findings_of(run).empty());
  const auto rows = render::left_out_json(advice::left_out_of(make_report(run, "a.h5", {})));
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["ranks"], nlohmann::json({2, 16}));
  EXPECT_EQ(rows[0]["why"], "shared-gpu");
  EXPECT_THAT(rows[0]["curve"].get<std::string>(), StartsWith("dp, tiny"));
  EXPECT_EQ(render::left_out_text(advice::left_out_of(make_report(run, "a.h5", {}))),
            "2, 16 ranks of dp (shared-gpu); 4 ranks of dp (injected); "
            "8 ranks of dp (oversubscribed, injected)");
  // Points without a result have no times to judge.
  run = pipelines();
  run.points[0].status = results::PointStatus::failed;
  run.points[1].verified = false;
  run.points[2].status = results::PointStatus::skipped;
  EXPECT_TRUE(findings_of(run).empty());
  for (results::PointData& point : run.points) {
    point.labels = {"shared-gpu"};
    point.status = results::PointStatus::failed;
  }
  EXPECT_TRUE(advice::left_out_of(make_report(run, "a.h5", {})).empty());
}

TEST(Findings, OfInjectedFaultsSayWhatWasInjected) {
  results::PointData point = traced_point({.dp = 4}, Script{}.compute().all_reduce(Axis::dp),
                                          {{{0, 200}, {200, 1000}}, {{0, 800}, {800, 1000}}});
  point.labels = {"injected"};
  point.injections = {"slow-rank=1:4"};
  const auto all = findings_of(point);
  const advice::Finding* const found = find(all, "imbalance");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->evidence.back().text, "slow-rank=1:4");
  EXPECT_EQ(find(all, "communication-ratio"), nullptr) << "which is no fault";
}

/// Launches of dp on 1 and 2 ranks, and of pp on 2; each factor is of the point's step time.
results::RunData spread_launch(const std::string& id, double one, double two, double stages) {
  results::RunData run = launch(id, 1, 2);
  add(run, {}, 20e-3 * one);
  add(run, {.dp = 2}, 10e-3 * two);
  add(run, {.pp = 2}, 10e-3 * stages).workload = "pp";
  return run;
}

TEST(Findings, WithoutSeverityAreOfTheLargestPointAndTheLargestFirst) {
  const JoinedLaunches launches{{spread_launch("a", 1, 1, 1), spread_launch("b", 1.4, 1.2, 4)}};
  std::vector<advice::Finding> found = advice::findings_of(launches.report());
  std::erase_if(found, [](const advice::Finding& at) { return at.rule != "launch-spread"; });
  ASSERT_EQ(found.size(), 2U);
  // (slowest - fastest) over the median, which of two is the mean.
  EXPECT_NEAR(found[0].size.value(), 3.0 / 2.5, 1e-9);
  EXPECT_THAT(found[0].curve, HasSubstr("pp"));
  EXPECT_NEAR(found[1].size.value(), 0.4 / 1.2, 1e-9);
  EXPECT_THAT(found[1].sentence, AllOf(HasSubstr("33.3%"), EndsWith("(on 1)")));
  EXPECT_EQ(found[1].ranks, (std::vector{1, 2}));
  EXPECT_TRUE(advice::findings_of(launches.reports.front()).empty()) << "one launch has no spread";
  const JoinedLaunches close{{launch_of("a", 1, 2, 10e-3), launch_of("b", 1, 2, 10.3e-3)}};
  EXPECT_TRUE(advice::findings_of(close.report()).empty());
}

TEST(Findings, OfHardwareComeBeforeOthersOfUnknownSeverity) {
  std::vector<results::RunData> runs{launch_of("a", 1, 2, 10e-3), launch_of("b", 1, 2, 90e-3)};
  runs.front().points.push_back(pairs(1));
  const JoinedLaunches launches{std::move(runs)};
  const auto all = advice::findings_of(launches.report());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].rule, "slow-pair");
  EXPECT_EQ(all[1].rule, "launch-spread");
  EXPECT_GT(all[1].size.value(), all[0].size.value());
}

TEST(Findings, OfSeveralRunsAreSaidOnceWhereTheyAreTheSame) {
  std::vector<results::RunData> runs;
  for (const char* const id : {"a", "b", "c"}) {
    runs.push_back(launch_of(id, 1, 2, 10e-3));
    runs.back().preflight.emplace();
    runs.back().preflight->results = {
        {.name = "gpu-nic", .verdict = results::Verdict::warning, .what = "is far"}};
  }
  runs.back().preflight->results[0].what = "is elsewhere";
  const JoinedLaunches launches{std::move(runs)};
  EXPECT_THAT(advice::findings_of(launches.report()),
              ElementsAre(Field(&advice::Finding::sentence, "launch 1: is far"),
                          Field(&advice::Finding::sentence, "launch 3: is elsewhere")));
}

TEST(FindingsText, HidesNoKindOfFaultOfHardware) {
  std::vector<advice::Finding> many(12);
  for (const std::size_t i : {10U, 11U}) {
    many[i].rule = "slow-pair";
    many[i].concern = advice::Concern::hardware;
  }
  EXPECT_EQ(render::shown_findings(many, 8), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 10}))
      << "the gravest of a kind is enough";
  for (const auto& [i, rule] : {std::pair{3U, "slow-rank"},
                                {5U, "slow-link"},
                                {7U, "throttling"},
                                {9U, "pcie-for-nvlink"}}) {
    many[i].rule = rule;
    many[i].concern = advice::Concern::hardware;
  }
  EXPECT_EQ(render::shown_findings(many, 3), (std::vector<std::size_t>{3, 5, 7, 9, 10}))
      << "the limit hides none of five kinds";
  EXPECT_TRUE(render::findings_document({}).empty());
}

/// The cells of the table in docs/findings.md, by the rule that they begin with: "| `noise` | ...".
std::map<std::string, std::vector<std::string>> documented_rules() {
  std::ifstream file{ISOSCALE_DOCS "/findings.md"};
  std::map<std::string, std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (std::size_t begin = 2; begin < line.size();) {
      const std::size_t end = std::min(line.find(" |", begin), line.size());
      cells.push_back(line.substr(begin, end - begin));
      begin = end + 3;
    }
    const std::string name = cells[0].substr(1, cells[0].size() - 2);
    EXPECT_TRUE(rows.emplace(name, cells).second) << line;
  }
  return rows;
}

TEST(FindingsDocs, NameEveryRuleWithItsThresholdsAndSourceAndNoOther) {
  auto documented = documented_rules();
  for (const advice::Rule& rule : advice::rules()) {
    SCOPED_TRACE(rule.name);
    const auto row = documented.extract(std::string{rule.name});
    ASSERT_FALSE(row.empty());
    const auto& cells = row.mapped();
    ASSERT_EQ(cells.size(), 4U) << "rule, finds, threshold, source";
    EXPECT_EQ(rule.thresholds[0].what.empty(), cells[2] == "—");
    for (const advice::Threshold& at : rule.thresholds) {
      if (at.what.empty()) continue;
      EXPECT_THAT(cells[2],
                  HasSubstr(advice::to_text(
                      {.what = std::string{at.what}, .unit = at.unit, .value = at.value})));
    }
    EXPECT_EQ(cells[3], rule.source);
    EXPECT_FALSE(rule.source.empty());
    EXPECT_EQ(rule.source.find("://"), std::string_view::npos);
  }
  for (const auto& [name, cells] : documented) ADD_FAILURE() << "no such rule: " << name;
}

TEST(Rules, HaveOneFunctionAndStandForOthersThatThereAre) {
  for (const advice::Rule& rule : advice::rules()) {
    EXPECT_NE(rule.judge_point == nullptr, rule.judge_run == nullptr) << rule.name;
    EXPECT_EQ(std::ranges::count(advice::rules(), rule.instead_of, &advice::Rule::name),
              rule.instead_of.empty() ? 0 : 1)
        << rule.name;
  }
  EXPECT_THROW((void)advice::rules().front().limit("no such"), std::out_of_range);
}

}  // namespace
}  // namespace isoscale::analysis
