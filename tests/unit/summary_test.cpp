// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/machine.hpp"
#include "analysis/render/text.hpp"
#include "golden.hpp"
#include "launch_samples.hpp"
#include "reported.hpp"
#include "results_samples.hpp"

/// The summary, the sections of the detailed report, and the results of preflight checks.
namespace isoscale::analysis {
namespace {

std::string summarised(const results::RunData& run, std::size_t columns = 110) {
  return render::render_summary(OneRun{run}.report(), columns);
}

/// The indented line that begins with `word`; "" without one.
std::string line_of(const std::string& text, const std::string& word) {
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("  " + word)) return line;
  }
  return "";
}

void expect_fits(const std::string& text, std::size_t columns) {
  EXPECT_LE(lines_of(text).size(), 40U) << text;
  golden::expect_fits(text, columns);
}

/// Two curves, of which some points failed or were skipped, and micro-benchmarks.
results::RunData run_of_everything() {
  results::RunData run = samples::two_curves();
  run.complete = false;
  for (int i = 0; i < 17; ++i) run.warnings.push_back("warning number " + std::to_string(i));
  for (auto&& point : {samples::collectives(6), samples::gemms(7), samples::pairs(8),
                       samples::memory(9), samples::overlaps(10)}) {
    run.points.push_back(point);
  }
  return run;
}

TEST(Summary, ClaimsWhatTheGoldenOneDoesAndFitsOnOneScreen) {
  golden::expect_claims(summarised(run_of_everything()), "summary.txt");
  results::RunData run = samples::two_curves();
  run.warnings.assign(17, std::string(300, 'w'));
  run.points.push_back(samples::gemms(6));
  run.points.push_back(samples::pairs(7));
  for (const std::size_t columns : {80U, 110U}) expect_fits(summarised(run, columns), columns);
}

TEST(Summary, NamesAlteredFilesBeforeAllOtherWarnings) {
  results::RunData first = run_of_everything(), second = run_of_everything();
  second.id = "another";
  second.altered = {"b.h5 is altered"};
  second.warnings.insert(second.warnings.begin(), second.altered[0]);
  const samples::JoinedLaunches of{{first, second}};
  const std::string text = render::render_summary(of.report(), 110);
  EXPECT_THAT(text, HasSubstr("b.h5 is altered"));
  EXPECT_EQ(text.find("b.h5 is altered"), text.rfind("b.h5 is altered"));
}

TEST(Summary, ShowsTheLabelWhereAllPointsHaveOne) {
  results::RunData run = samples::two_curves();
  run.points.resize(4);
  run.points[1].labels = {"oversubscribed"};
  const std::string text = summarised(run);
  EXPECT_THAT(line_of(text, "dp"), AllOf(HasSubstr("63.3%"), HasSubstr("oversubscribed")));
  EXPECT_THAT(text, HasSubstr("No scaling result"));
}

TEST(Summary, NamesTheLargestCausesUnlessTheyDoNotExplainTheLoss) {
  OneRun one{samples::dp_curve()};
  auto& waterfall = one.made.curves.front().points[1].causes.waterfall;
  const double step = waterfall.value().measured;
  const auto line = [&] { return line_of(render::render_summary(one.report(), 130), "dp"); };
  waterfall->lost = {{"GEMMs", 0.05 * step},
                     {"dp transfer", 0.2 * step},
                     {"noise", 0.01 * step},
                     {"gap", -0.1 * step},
                     {"untraced", 0.01 * step}};
  EXPECT_THAT(line(), AllOf(HasSubstr("transfer 20.0%, GEMMs 5.0%"), Not(HasSubstr("noise")),
                            Not(HasSubstr("unexplained"))));
  // Half of the largest cause and more is no detail.
  waterfall->lost.back().seconds = -0.1 * step;
  EXPECT_THAT(line(), HasSubstr("GEMMs 5.0%, unexplained -10.0%"));
  waterfall->lost = {{"dp transfer", 2.1 * step}, {"untraced", -1.178 * step}};
  waterfall->explains = false;
  // The parts of the point's own traced step stand instead.
  EXPECT_THAT(line(), AllOf(HasSubstr("transfer 13.0%, copies 2.0%"),
                            HasSubstr("unexplained -117.8%"), Not(HasSubstr("210.0%"))));
  EXPECT_THAT(render::render_sections(one.report(), render::Sections::parse("waterfall")),
              AllOf(HasSubstr("-117.8%"), Not(HasSubstr("210.0%"))));
}

TEST(Summary, HasTheMostTokensOfAllMeshes) {
  results::RunData run =
      samples::run({samples::bench_point(0, "infer", 4), samples::bench_point(1, "infer", 4)});
  run.points[0].mesh = {.tp = 4};
  samples::add_batch(run.points[0], 8, 0.02, 0.002);     // 4 k tokens/s
  samples::add_batch(run.points[1], 8, 0.05, 0.005);     // 6.4 k
  samples::add_batch(run.points[1], 9, 0.01, 0.001, 1);  // 36 k, of one play
  const std::string text = summarised(run);
  EXPECT_THAT(line_of(text, "infer,"), AllOf(HasSubstr("6.4 k"), HasSubstr("TPOT 5 ms ±"),
                                             HasSubstr("n=11"), HasSubstr("batch 8, dp=4")));
  EXPECT_THAT(text, Not(HasSubstr("36 k")));
  run.points.resize(1);
  run.points[0].rows.clear();
  samples::add_batch(run.points[0], 8, 0.02, 0.002, 1);
  EXPECT_THAT(line_of(summarised(run), "infer,"), HasSubstr("(n=1: too few)"));
}

results::RowData served(double achieved, bool saturated, bool highest) {
  return {.text = {{"op", "serve"},
                   {"part", "rate"},
                   {"saturated", saturated ? "yes" : "no"},
                   {"highest", highest ? "yes" : ""}},
          .number = {{"achieved", achieved}, {"latency_p99_seconds", 0.25}, {"requests", 60}}};
}

TEST(Summary, HasTheRateThatServingSustained) {
  results::RunData run = samples::run({samples::bench_point(0, "serve", 2)});
  std::vector<results::RowData>& rows = run.points[0].rows;
  rows = {served(10, false, false), served(20, false, true), served(25, true, false)};
  EXPECT_THAT(line_of(summarised(run), "serve,"),
              AllOf(HasSubstr("rate sustained"), HasSubstr("20"), HasSubstr("250 ms"),
                    HasSubstr("60 requests"), Not(HasSubstr("saturated"))));
  // Without a mark a rate that did not pile up comes first.
  rows = {served(10, false, false), served(25, true, false)};
  EXPECT_THAT(line_of(summarised(run), "serve,"), AllOf(HasSubstr("sustained"), HasSubstr("10")));
  rows = {served(25, true, false)};
  EXPECT_THAT(line_of(summarised(run), "serve,"), AllOf(HasSubstr("saturated"), HasSubstr("25")));
}

TEST(Summary, NamesCurvesOfOneTitleByTheirMeshesOrMicrobatches) {
  results::RunData run =
      samples::run({samples::measured(0, {.tp = 2}, 1), samples::measured(1, {.tp = 4}, 0.6),
                    samples::measured(2, {.dp = 2}, 1), samples::measured(3, {.dp = 4}, 0.6)});
  const std::string meshes = summarised(run);
  EXPECT_NE(line_of(meshes, "dp, tp=4"), "") << meshes;
  EXPECT_NE(line_of(meshes, "dp, dp=4"), "") << meshes;
  run.points[0].mesh = {.dp = 2}, run.points[1].mesh = {.dp = 4};
  run.points[2].options["microbatch"] = run.points[3].options["microbatch"] = "4";
  const std::string microbatches = summarised(run);
  EXPECT_NE(line_of(microbatches, "dp, microbatch=2"), "") << microbatches;
  EXPECT_NE(line_of(microbatches, "dp, microbatch=4"), "") << microbatches;
}

TEST(Summary, SaysWhereARunHung) {
  results::RunData run = samples::two_curves();
  run.complete = false;
  run.points.resize(3);
  run.points[2].status = results::PointStatus::failed;
  run.points[2].verified.reset();
  run.points[2].step_times.clear();
  run.points[2].reason = "hang: rank 1 is in gemm; rank 1 did not arrive at all_reduce";
  const std::string text = summarised(run);
  expect_fits(text, 110);
  EXPECT_THAT(text, HasSubstr("PARTIAL"));
  EXPECT_THAT(line_of(text, "FAILED"), AllOf(HasSubstr("1 of 3"), HasSubstr("hang: rank 1 is")));
  // The points that were finished before stand as ever.
  EXPECT_THAT(line_of(text, "dp"), AllOf(HasSubstr(" 2 "), HasSubstr("92.5%")));
  run.points.erase(run.points.begin(), run.points.begin() + 2);
  EXPECT_THAT(summarised(run), AllOf(HasSubstr("FAILED"), HasSubstr("not measured: ")));
}

TEST(Summary, SaysWhichPointsFindingsDoNotSpeakOf) {
  results::RunData run = samples::two_curves();
  EXPECT_THAT(summarised(run), HasSubstr("of dp (oversubscribed)"));
  for (results::PointData& point : run.points) point.labels = {"oversubscribed"};
  EXPECT_THAT(summarised(run), AllOf(HasSubstr("Findings: none"), HasSubstr("1, 2, 4 ranks")));
  run.points.clear();
  EXPECT_THAT(summarised(run), HasSubstr("No point was measured"));
}

TEST(Summary, SaysWhenTheBaselineIsDoubtfulToo) {
  results::RunData run = samples::dp_run({1, 0.6, 0.4});
  for (results::PointData& point : run.points) point.step_times.resize(5);  // two of them warm-up
  EXPECT_THAT(line_of(summarised(run), "dp"),
              AllOf(HasSubstr(" 4 "), HasSubstr("few-steps (baseline too)")));
  run.points[2] = samples::measured(2, {.dp = 4}, 0.4);
  const RunReport report = make_report(run, "a.h5", {.baseline = 1});
  EXPECT_THAT(line_of(render::render_summary({{&report, 1}}, 110), "dp"),
              AllOf(HasSubstr(" 4 "), HasSubstr("baseline few-steps")));
}

TEST(Summary, TellsFindingsOfOneRuleOnce) {
  results::RunData run = samples::two_curves();
  for (const results::PointData& point : samples::two_curves().points) {
    if (point.workload != "dp") continue;
    run.points.push_back(point);
    run.points.back().options["bucket"] = "1MiB";
    run.points.back().index += 10;
  }
  const std::string text = summarised(run);
  const std::size_t first = text.find("32.0% hidden");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("32.0% hidden", first + 1), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("also: dp"));
}

TEST(Summary, OfSeveralLaunchesHasTheirJoinedCurves) {
  std::vector<results::RunData> runs = samples::three_launches();
  runs[1].complete = false;
  const samples::JoinedLaunches joined{std::move(runs)};
  const std::string text = render::render_summary(joined.report(), 110);
  expect_fits(text, 110);
  EXPECT_THAT(text, AllOf(HasSubstr("3 launches"), HasSubstr("launch 2: ")));
  EXPECT_THAT(line_of(text, "dp"), AllOf(HasSubstr(" 3 "), HasSubstr("40.02 ms")));
}

TEST(Sections, PrintTheirPartAlone) {
  const OneRun one{samples::two_curves()};
  const auto text = [&](const char* names) {
    return render::render_sections(one.report(), render::Sections::parse(names));
  };
  EXPECT_THAT(text("pop"), AllOf(HasSubstr("serialisation"), Not(HasSubstr("step time")),
                                 Not(HasSubstr("ideal step")), Not(HasSubstr("findings"))));
  EXPECT_THAT(text("waterfall,findings"), AllOf(HasSubstr("ideal step"), HasSubstr("findings"),
                                                Not(HasSubstr("serialisation"))));
  EXPECT_THAT(text("efficiency"), AllOf(HasSubstr("92.5% (91."), HasSubstr("8.1% (7.3% to 8.8%)")));
  const std::string legend = text("legend");
  EXPECT_THAT(legend, AllOf(HasSubstr("median"), Not(HasSubstr("92.5%"))));
  for (const char* const heading : {"efficiency", "step time", "lost most", "note"}) {
    EXPECT_NE(line_of(legend, heading), "") << heading;
  }
}

/// A check that is ok, a warning, an allowed stop and two checks that were not made.
results::PreflightData preflight_sample() {
  results::PreflightData preflight = results::samples::preflight();
  preflight.results[1].host = "c3\x1b[31m";
  preflight.results[3].what = "no NVML";
  preflight.results.push_back(preflight.results[3]);
  preflight.results[4].name = "ecc";
  return preflight;
}

TEST(Checks, ShowTheWorstFirstAndWhatWasNotLookedAtByWhy) {
  EXPECT_EQ(render::count_checks(preflight_sample()), "1 ok, 2 not checked, 1 warning, 1 stop");
  EXPECT_EQ(render::count_checks({}), "");
  const std::string text = render::render_checks_text(preflight_sample());
  EXPECT_LT(text.find("\n  stop (allowed)"), text.find("\n  warning"));
  EXPECT_LT(text.find("\n  warning"), text.find("\n  ok"));
  for (const char* const part : {"no NVML\n    xid, ecc\n", "cost: half", "fix: reseat"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  // A report has them only where something is wrong.
  const render::Facts facts = render::check_facts(preflight_sample());
  ASSERT_EQ(facts.size(), 3U);
  EXPECT_EQ(facts[0].second, render::count_checks(preflight_sample()));
  EXPECT_THAT(facts[1].second, HasSubstr("port-rate"));
  EXPECT_THAT(facts[2].second, HasSubstr("allowed"));
}

TEST(Checks, AreObjectsInJsonAndDamagedFactsAreNone) {
  const auto document = json::parse(render::render_checks_json(preflight_sample()));
  EXPECT_EQ(document["facts"]["device"], "host");
  EXPECT_EQ(document["results"].size(), 5U);
  EXPECT_EQ(document["results"][1]["verdict"], "warning");
  EXPECT_EQ(document["results"][0]["host"], nullptr);
  EXPECT_EQ(document["results"][2]["allowed"], true);
  const auto facts_of = [](const std::string& text) {
    results::PreflightData preflight = preflight_sample();
    preflight.facts = text;
    return json::parse(render::render_checks_json(preflight))["facts"];
  };
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  for (const std::string& facts :
       {std::string{}, std::string{"{"}, std::string(100'000, '['), nested(100'000), nested(18)}) {
    EXPECT_EQ(facts_of(facts), nullptr);
  }
  EXPECT_NE(facts_of(nested(17)), nullptr);
}

}  // namespace
}  // namespace isoscale::analysis
