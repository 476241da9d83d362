// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/advice/findings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/advice/rules.hpp"
#include "analysis/render/findings.hpp"
#include "analysis/render/render.hpp"
#include "analysis/render/text.hpp"
#include "bench_samples.hpp"
#include "findings_samples.hpp"
#include "launch_samples.hpp"

namespace isoscale::analysis {
namespace {

using samples::find;
using samples::finding;
using samples::Script;
using testing::HasSubstr;
using testing::Not;

/// A pipeline of `stages` with 8 microbatches, without traces.
results::PointData pipeline(int index, int stages) {
  results::PointData point = samples::measured(index, {.pp = stages}, 80e-3 / stages);
  point.options = {
      {"batch", "16"}, {"microbatches", "8"}, {"microbatch", "2"}, {"schedule", "1f1b"}};
  return point;
}

results::RunData pipelines() {
  results::RunData run = samples::run();
  run.points = {pipeline(0, 2), pipeline(1, 4), pipeline(2, 8)};
  return run;
}

TEST(Findings, AreOneForAllPointsOfACurve) {
  const auto all = samples::findings_of(pipelines());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].ranks, (std::vector{2, 4, 8}));
  // The gravest stands for all.
  EXPECT_DOUBLE_EQ(all[0].severity.value(), 7.0 / 15);
  EXPECT_EQ(all[0].sentence,
            "2, 4, 8 ranks: 8 microbatches on 8 stages: the 1f1b schedule alone leaves 46.7% idle "
            "(on 8)");
  EXPECT_EQ(all[0].evidence.front().ranks, 8);
  EXPECT_EQ(all[0].evidence.back().ranks, 2);
}

TEST(Findings, ComeGravestFirstAndTheUnknownLast) {
  results::RunData run = pipelines();
  const Script script = Script{}.compute().all_reduce(mesh::Axis::dp);
  results::PointData slow = samples::traced_point({.dp = 2}, script, {{{0, 700}, {700, 1000}}});
  slow.index = 3;
  run.points.push_back(slow);
  run.preflight.emplace();
  run.preflight->results = {{.name = "gpu-nic", .verdict = preflight::Verdict::warning}};
  std::vector<std::string> names;
  for (const advice::Finding& at : samples::findings_of(run)) names.emplace_back(at.rule);
  EXPECT_EQ(names,
            (std::vector<std::string>{"few-microbatches", "communication-ratio", "far-numa"}));
}

TEST(Findings, AreNoneOfPointsThatTellNothingOfTheMachine) {
  for (const char* const label : {"oversubscribed", "shared-gpu", "injected"}) {
    results::RunData run = pipelines();
    for (results::PointData& point : run.points) point.labels = {label};
    EXPECT_TRUE(samples::findings_of(run).empty()) << label;
  }
  results::RunData run = pipelines();
  run.points[0].status = results::PointStatus::failed;
  run.points[1].verified = false;
  run.points[2].status = results::PointStatus::skipped;
  EXPECT_TRUE(samples::findings_of(run).empty());
}

TEST(Findings, SayWhichPointsWereNotJudged) {
  results::RunData run = pipelines();
  EXPECT_TRUE(advice::left_out_of(make_report(run, "a.h5", {})).empty());
  run.points[0].labels = {"shared-gpu"};
  run.points[2].labels = {"oversubscribed", "injected"};
  run.points.push_back(pipeline(3, 16));
  run.points.back().labels = {"shared-gpu"};
  const auto left_out = advice::left_out_of(make_report(run, "a.h5", {}));
  EXPECT_EQ(render::left_out_text(left_out),
            "2, 16 ranks of dp (shared-gpu); 8 ranks of dp (oversubscribed, injected)");
  const auto rows = render::left_out_json(left_out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["ranks"], nlohmann::json({2, 16}));
  EXPECT_EQ(rows[0]["why"], "shared-gpu");
  EXPECT_THAT(rows[0]["curve"].get<std::string>(), testing::StartsWith("dp, tiny"));
  // Points without a result have no times to judge.
  for (results::PointData& point : run.points) point.status = results::PointStatus::failed;
  EXPECT_TRUE(advice::left_out_of(make_report(run, "a.h5", {})).empty());
}

TEST(Findings, OfInjectedFaultsSayWhatWasInjected) {
  results::PointData point =
      samples::traced_point({.dp = 4}, Script{}.compute().all_reduce(mesh::Axis::dp),
                            {{{0, 200}, {200, 1000}}, {{0, 800}, {800, 1000}}});
  point.labels = {"injected"};
  point.injections = {"slow-rank=1:4"};
  const auto all = samples::findings_of(point);
  const advice::Finding* const found = find(all, "imbalance");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->evidence.back().text, "slow-rank=1:4");
  EXPECT_EQ(find(all, "communication-ratio"), nullptr) << "which is no fault";
}

TEST(Findings, OfSeveralLaunchesAreThoseOfTheJoinedCurves) {
  std::vector<results::RunData> runs;
  for (int launch = 0; launch < 3; ++launch) {
    runs.push_back(samples::launch_of("run" + std::to_string(launch), 1, 2, 10e-3 + launch * 1e-3));
  }
  const samples::JoinedLaunches launches{std::move(runs)};
  const auto found = finding(launches.report(), "launch-spread");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->sentence, HasSubstr("launches differ by 18.2%"));
  EXPECT_TRUE(advice::findings_of(launches.reports.front()).empty()) << "one launch has no spread";
  const samples::JoinedLaunches close{
      {samples::launch_of("a", 1, 2, 10e-3), samples::launch_of("b", 1, 2, 10.3e-3)}};
  EXPECT_TRUE(advice::findings_of(close.report()).empty());
}

/// Launches of dp on 1 and 2 ranks, and of pp on 2; each factor is of the point's step time.
results::RunData spread_launch(const std::string& id, double one, double two, double stages) {
  results::RunData run = samples::launch(id, 1, 2);
  samples::add(run, {}, 20e-3 * one);
  samples::add(run, {.dp = 2}, 10e-3 * two);
  samples::add(run, {.pp = 2}, 10e-3 * stages).workload = "pp";
  return run;
}

TEST(Findings, WithoutSeverityAreOfTheLargestPointAndTheLargestFirst) {
  const samples::JoinedLaunches launches{
      {spread_launch("a", 1, 1, 1), spread_launch("b", 1.4, 1.2, 4)}};
  std::vector<advice::Finding> found = advice::findings_of(launches.report());
  std::erase_if(found, [](const advice::Finding& at) { return at.rule != "launch-spread"; });
  ASSERT_EQ(found.size(), 2U);
  // (slowest - fastest) over the median, which of two is the mean.
  EXPECT_NEAR(found[0].size.value(), 3.0 / 2.5, 1e-9);
  EXPECT_THAT(found[0].curve, HasSubstr("pp"));
  EXPECT_NEAR(found[1].size.value(), 0.4 / 1.2, 1e-9);
  EXPECT_THAT(found[1].sentence, HasSubstr("1, 2 ranks: launches differ by 33.3%"));
  EXPECT_THAT(found[1].sentence, testing::EndsWith("(on 1)"));
}

TEST(Findings, OfHardwareComeBeforeOthersOfUnknownSeverity) {
  std::vector<results::RunData> runs;
  for (const auto& [id, factor] : {std::pair{"a", 1.0}, {"b", 9.0}}) {
    runs.push_back(samples::launch_of(id, 1, 2, 10e-3 * factor));
  }
  runs.front().points.push_back(samples::pairs(1));
  const samples::JoinedLaunches launches{std::move(runs)};
  const auto all = advice::findings_of(launches.report());
  const advice::Finding* const pair = find(all, "slow-pair");
  const advice::Finding* const spread = find(all, "launch-spread");
  ASSERT_TRUE(pair != nullptr && spread != nullptr);
  EXPECT_GT(spread->size.value(), pair->size.value());
  EXPECT_LT(pair, spread);
}

TEST(Findings, OfSeveralRunsAreSaidOnceWhereTheyAreTheSame) {
  std::vector<results::RunData> runs;
  for (const char* const id : {"a", "b", "c"}) {
    runs.push_back(samples::launch_of(id, 1, 2, 10e-3));
    runs.back().preflight.emplace();
    runs.back().preflight->results = {
        {.name = "gpu-nic", .verdict = preflight::Verdict::warning, .what = "is far"}};
  }
  runs.back().preflight->results[0].what = "is elsewhere";
  const samples::JoinedLaunches launches{std::move(runs)};
  std::vector<std::string> said;
  for (const advice::Finding& at : advice::findings_of(launches.report()))
    said.push_back(at.sentence);
  EXPECT_EQ(said, (std::vector<std::string>{"launch 1: is far", "launch 3: is elsewhere"}));
}

TEST(FindingsJson, HasEveryKey) {
  const auto rows = render::findings_json(samples::findings_of(pipelines()));
  ASSERT_EQ(rows.size(), 1U);
  const auto& row = rows[0];
  std::vector<std::string> keys;
  for (const auto& [key, value] : row.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"rule", "concern", "severity", "size", "curve", "ranks",
                                            "sentence", "evidence", "next_step", "source"}));
  EXPECT_EQ(row["rule"], "few-microbatches");
  EXPECT_EQ(row["concern"], "program");
  EXPECT_TRUE(row["size"].is_null());
  EXPECT_EQ(row["ranks"], nlohmann::json({2, 4, 8}));
  EXPECT_DOUBLE_EQ(row["severity"].get<double>(), 7.0 / 15);
  EXPECT_EQ(
      row["evidence"][1],
      nlohmann::ordered_json(
          {{"ranks", 8}, {"what", "microbatches"}, {"value", 8.0}, {"unit", "1"}, {"text", "8"}}));
}

TEST(FindingsText, HidesNoKindOfFaultOfHardware) {
  std::vector<advice::Finding> many(12);
  for (const std::size_t i : {10U, 11U}) {
    many[i].rule = "slow-pair";
    many[i].concern = advice::Concern::hardware;
  }
  EXPECT_EQ(render::shown_findings(many, 8), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 10}))
      << "the gravest of a kind is enough";
  EXPECT_TRUE(render::findings_document({}).empty());
}

TEST(FindingsText, IsHarmlessAndFitsTheTerminal) {
  advice::Finding hostile{.rule = "noise", .curve = samples::hostile, .sentence = samples::hostile};
  hostile.next_step = samples::hostile;
  for (int i = 0; i < 30; ++i) {
    hostile.evidence.push_back({.what = "words", .unit = Unit::text, .text = samples::hostile});
  }
  std::istringstream lines{to_text(render::findings_document({&hostile, 1}), 118)};
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line, render::escape(line));
    EXPECT_LE(render::display_width(line), 118U) << line;
  }
}

TEST(FindingsText, StandsBeforeTheCurves) {
  const results::RunData run = pipelines();
  const RunReport report = make_report(run, "a.h5", {});
  const std::string text = render::render_text({{&report, 1}});
  EXPECT_LT(text.find("findings, most severe first"), text.find("speed-up"));
  EXPECT_LT(text.find("~47%  2, 4, 8 ranks: 8 microbatches"), text.find("speed-up"));
  const std::string markdown = render::render_markdown({{&report, 1}});
  EXPECT_LT(markdown.find("### findings, most severe first"), markdown.find("speed-up"));
  EXPECT_THAT(markdown, HasSubstr("arXiv 2104.04473"));
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

TEST(FindingsDocs, NameEveryRuleAndNoOther) {
  auto documented = documented_rules();
  for (const advice::Rule& rule : advice::rules()) {
    const auto row = documented.find(std::string{rule.name});
    ASSERT_NE(row, documented.end()) << rule.name;
    EXPECT_EQ(row->second.size(), 4U) << rule.name << ": rule, finds, threshold, source";
    documented.erase(row);
  }
  for (const auto& [name, cells] : documented) ADD_FAILURE() << "no such rule: " << name;
}

TEST(FindingsDocs, GiveEveryThresholdAndSource) {
  const auto documented = documented_rules();
  for (const advice::Rule& rule : advice::rules()) {
    const auto& cells = documented.at(std::string{rule.name});
    for (const advice::Threshold& at : rule.thresholds) {
      const std::string text =
          advice::to_text({.what = std::string{at.what}, .unit = at.unit, .value = at.value});
      EXPECT_NE(cells[2].find(text), std::string::npos) << rule.name << " lacks: " << text;
    }
    EXPECT_EQ(rule.thresholds.empty(), cells[2] == "—") << rule.name;
    EXPECT_EQ(cells[3], rule.source) << rule.name;
  }
}

TEST(Rules, HaveOneFunctionAndASource) {
  for (const advice::Rule& rule : advice::rules()) {
    EXPECT_EQ(rule.judge_point == nullptr, rule.scope == advice::Scope::run) << rule.name;
    EXPECT_EQ(rule.judge_run != nullptr, rule.scope == advice::Scope::run) << rule.name;
    EXPECT_FALSE(rule.source.empty()) << rule.name;
    EXPECT_EQ(rule.source.find("://"), std::string_view::npos) << rule.name;
    const auto same = std::ranges::count(advice::rules(), rule.name, &advice::Rule::name);
    EXPECT_EQ(same, 1) << rule.name;
    if (rule.instead_of.empty()) continue;
    EXPECT_EQ(std::ranges::count(advice::rules(), rule.instead_of, &advice::Rule::name), 1)
        << rule.name;
  }
  EXPECT_THROW((void)advice::threshold_of(advice::rules().front(), "no such"), std::out_of_range);
}

}  // namespace
}  // namespace isoscale::analysis
