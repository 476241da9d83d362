// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/render/render.hpp"
#include "analysis/render/text.hpp"
#include "golden.hpp"
#include "launch_samples.hpp"
#include "reported.hpp"

namespace isoscale::analysis {
namespace {

using nlohmann::json;
using samples::add;
using samples::JoinedLaunches;
using samples::launch;
using samples::launch_of;
using testing::HasSubstr;
using testing::Not;

/// Three launches on one node, of which one has an oversubscribed point too; two on two nodes; one
/// on another machine.
std::vector<results::RunData> launches() {
  std::vector<results::RunData> runs;
  for (const auto& [id, step] : {std::pair{"a1", 0.0410}, {"a2", 0.0400}, {"a3", 0.0396}}) {
    runs.push_back(launch_of(id, 1, 4, step));
  }
  add(runs[2], {.dp = 2}, 0.0790).labels = {"oversubscribed"};
  for (const auto& [id, step] : {std::pair{"b1", 0.0220}, {"b2", 0.0230}}) {
    runs.push_back(launch(id, 2, 4));
    add(runs.back(), {.tp = 4, .dp = 2}, step);
  }
  runs.push_back(launch_of("c1", 4, 4, 0.0110));
  for (auto& facts : runs.back().rank_facts) facts.text["cpu_model"] = "Intel Xeon 8480";
  return runs;
}

TEST(RenderLaunches, ClaimsWhatTheGoldenOnesDoAndFitsOn120Columns) {
  const JoinedLaunches of{launches()};
  golden::expect_claims(render::render_text(of.report()), "launches.txt");
  golden::expect_claims(render::render_markdown(of.report()), "launches.md");
  golden::expect_fits(render::render_text(of.report()), 120);
}

TEST(RenderLaunches, OneLaunchIsShownAsBefore) {
  const JoinedLaunches of{{launch_of("a", 1, 2, 0.1)}};
  const merge::Report alone{.runs = of.reports};
  EXPECT_EQ(render::render_text(of.report()), render::render_text(alone));
  EXPECT_EQ(render::render_markdown(of.report()), render::render_markdown(alone));
  EXPECT_THAT(render::render_text(alone), Not(HasSubstr("over launches")));
}

TEST(RenderLaunches, WarningsAreShownWithOneLaunchToo) {
  const JoinedLaunches of{{launch_of("a", 1, 2, 0.1)}};
  const merge::Report report{.runs = of.reports, .warnings = {"a.h5 was given more than once"}};
  EXPECT_THAT(render::render_text(report), HasSubstr("WARNING  a.h5 was given more than once"));
  EXPECT_THAT(render::render_markdown(report), HasSubstr("WARNING: a.h5 was given more than once"));
  EXPECT_EQ(json::parse(render::render_json(report))["warnings"][0],
            "a.h5 was given more than once");
}

/// Three launches of 2 ranks, traced; the second is the typical one.
std::vector<results::RunData> traced_launches() {
  const samples::Script script = samples::Script{}.compute().all_reduce(mesh::Axis::dp);
  std::vector<results::RunData> runs;
  for (const auto& [id, step] : {std::pair{"a", 0.3}, {"b", 0.2}, {"c", 0.1}}) {
    runs.push_back(launch_of(id, 1, 2, step));
    samples::set_trace(runs.back().points[0],
                       samples::point({.dp = 2}, {script, script},
                                      {{samples::trace(0, {0, 100}, {{0, 60}, {60, 100}}),
                                        samples::trace(1, {0, 100}, {{0, 50}, {50, 100}})}}));
    samples::add_traced_steps(runs.back().points[0], step, 1.01);
  }
  return runs;
}

TEST(RenderLaunches, TablesOfOneLaunchSayWhoseTheyAre) {
  const JoinedLaunches of{traced_launches()};
  const std::string text = render::render_text(of.report());
  EXPECT_THAT(text, HasSubstr("  where a step went, mean over ranks, launch 2\n"));
  EXPECT_THAT(text, HasSubstr("each the product of those below it, launch 2\n"));
  EXPECT_THAT(text, HasSubstr("by phase, 2 ranks, 1 traced step, launch 2\n"));
  EXPECT_THAT(render::render_markdown(of.report()), HasSubstr("mean over ranks, launch 2:\n"));
  EXPECT_THAT(render::render_text({.runs = std::span{of.reports}.first(1)}),
              Not(HasSubstr("launch 1")));
}

TEST(RenderLaunches, TablesOfSeveralLaunchesSayWhichPointIsWhose) {
  std::vector<results::RunData> runs = traced_launches();
  results::RunData four = launch_of("d", 1, 4, 0.08);
  const samples::Script script = samples::Script{}.compute();
  timeline::Timeline step;
  for (int rank = 0; rank < 4; ++rank) {
    step.ranks.push_back(samples::trace(rank, {0, 100}, {{0, 100}}));
  }
  samples::set_trace(four.points[0],
                     samples::point({.dp = 4}, std::vector(4, script), std::move(step)));
  samples::add_traced_steps(four.points[0], 0.08, 1.01);
  runs.push_back(std::move(four));
  EXPECT_THAT(render::render_text(JoinedLaunches{std::move(runs)}.report()),
              HasSubstr("mean over ranks, launch 2 on 2 ranks, launch 4 on 4 ranks\n"));
}

TEST(RenderLaunches, ACurveOfSkippedPointsIsItsReasons) {
  results::RunData run = launch_of("a", 1, 2, 0.1);
  run.points[0].status = results::PointStatus::skipped;
  run.points[0].reason = "batch 1 does not divide into 2";
  run.points[0].step_times.clear();
  std::vector<results::RunData> runs{run, run};
  runs[1].id = "b";
  const JoinedLaunches of{std::move(runs)};
  const merge::Report alone{.runs = std::span{of.reports}.first(1)};
  for (const std::string& text : {render::render_text(alone), render::render_markdown(alone)}) {
    EXPECT_THAT(text, HasSubstr("2 ranks: batch 1 does not divide into 2\n"));
    EXPECT_THAT(text, Not(HasSubstr("speed-up")));
  }
  EXPECT_THAT(render::render_text(of.report()),
              HasSubstr("left out 2 ranks, launches 1, 2: skipped: batch 1 does not divide"));
  EXPECT_THAT(render::render_text(of.report()), Not(HasSubstr("baseline none")));
}

TEST(RenderLaunches, AnAsymmetricIntervalIsShownByItsEnds) {
  std::vector<results::RunData> runs;
  for (const auto& [id, step] : {std::pair{"a", 0.1}, {"b", 0.2}, {"c", 0.4}}) {
    runs.push_back(launch_of(id, 1, 2, step));
  }
  // ln 2 * t(2) / sqrt(3) = 0.6931 * 4.3027 / 1.7321 = 1.7219: over e^1.7219 = 5.595.
  EXPECT_THAT(render::render_text(JoinedLaunches{std::move(runs)}.report()),
              HasSubstr("  -82.1% +459."));
}

TEST(RenderLaunches, JsonHasTheCurves) {
  const JoinedLaunches of{launches()};
  const json document = json::parse(render::render_json(of.report()));
  ASSERT_EQ(document["runs"].size(), 6U);
  ASSERT_EQ(document["curves"].size(), 2U);
  const json& curve = document["curves"][0];
  expect_holds(curve, {{"fingerprint", of.joined.curves[0].fingerprint},
                       {"baseline", 4},
                       {"baseline_unit", "rank"},
                       {"machine", {{"CPU", "AMD EPYC 7763"}}},
                       {"left_out", {{{"reason", "oversubscribed"}, {"ranks", 2}}}}});
  EXPECT_EQ(curve["apart"].size(), 1U);
  ASSERT_EQ(curve["points"].size(), 2U);
  const json& four = curve["points"][0];
  EXPECT_EQ(four["launches"].size(), 3U);
  expect_holds(four["launches"][1], {{"run", "a2"}, {"typical", true}});
  expect_holds(four, {{"ranks", 4},
                      {"step_time",
                       {{"launches", 3}, {"median", four["launches"][1]["step_time"]["median"]}}},
                      {"spread", 0.035}});
  expect_holds(curve["points"][1], {{"nodes", 2},
                                    {"ranks_per_node", {{"fewest", 4}, {"most", 4}}},
                                    {"axes", {{"tp", "intra-node"}, {"dp", "inter-node"}}},
                                    {"step_time", {{"lower", nullptr}}},  // two launches
                                    {"efficiency", 0.04 / 0.0225 / 2}});
  EXPECT_EQ(curve["points"][1]["axes"].size(), 2U);
  EXPECT_EQ(curve["points"][1]["ranks_per_node"].size(), 2U);
  EXPECT_TRUE(document["curves"][1]["points"][0]["spread"].is_null());
}

/// A launch of a traced curve on 1 and 2 ranks, whose steps take so many times as long.
results::RunData traced_launch(const std::string& id, double one, double two) {
  results::RunData run = samples::run();
  run.id = id;
  samples::add_dp_curve(run);
  run.points.resize(2);
  for (const auto& [point, factor] : {std::pair{0U, one}, {1U, two}}) {
    samples::slow_down(run.points[point], factor);
  }
  return run;
}

TEST(RenderLaunches, JsonHasTheCausesOfTheJoinedCurve) {
  // The typical launch of 2 ranks is the second, whose own baseline is not the joined one.
  const JoinedLaunches of{
      {traced_launch("a", 1, 1), traced_launch("b", 1.2, 1.05), traced_launch("c", 1.1, 1.3)}};
  const json document = json::parse(render::render_json(of.report()));
  const json& points = document["curves"][0]["points"];
  ASSERT_EQ(points.size(), 2U);
  const json& two = points[1];
  EXPECT_EQ(two["launch"], 2);
  const json& own = document["runs"][1]["points"][1];
  for (const char* const key : {"breakdown", "hidden_communication", "traced_step"}) {
    EXPECT_FALSE(own[key].is_null()) << key;
    EXPECT_EQ(two[key], own[key]) << key << " is that of the typical launch";
  }
  const double base = points[0]["step_time"]["median"], step = two["step_time"]["median"];
  EXPECT_DOUBLE_EQ(two["waterfall"]["ideal"], base / 2);
  EXPECT_DOUBLE_EQ(two["waterfall"]["measured"], step);
  EXPECT_NE(own["waterfall"]["ideal"], two["waterfall"]["ideal"]);
  double lost = 0;
  for (const json& seconds : two["waterfall"]["lost"]) lost += seconds.get<double>();
  EXPECT_NEAR(lost, step - base / 2, 1e-12);
  // Karp and Flatt with 2 ranks: (1 / speed-up - 1 / 2) / (1 - 1 / 2).
  EXPECT_NEAR(two["serial_fraction"]["value"], 2 * step / base - 1, 1e-9);
  EXPECT_TRUE(two["pop"]["global"].is_number());
  EXPECT_TRUE(points[0]["waterfall"].is_null());
}

TEST(RenderLaunches, CsvHasTheJoinedPointBesideEachLaunch) {
  const JoinedLaunches of{launches()};
  std::istringstream lines{render::render_csv(of.report())};
  std::string heading, first;
  std::getline(lines, heading);
  std::getline(lines, first);
  EXPECT_THAT(heading, HasSubstr("axes,curve,launches,joined_step_time,"));
  EXPECT_THAT(first, HasSubstr("," + of.joined.curves[0].fingerprint + ",3,"));
  EXPECT_THAT(render::render_csv(of.report()), HasSubstr(",oversubscribed,"));
}

TEST(RenderLaunches, LetNoControlCharactersThrough) {
  std::vector<results::RunData> runs{samples::hostile_run(), samples::hostile_run()};
  for (auto& run : runs) {
    for (auto& point : run.points) point.labels.clear();
  }
  runs[1].mpi_library += "x\x1b[2J";
  const JoinedLaunches of{std::move(runs)};
  for (const auto& render :
       {render::render_text, render::render_json, render::render_csv, render::render_markdown}) {
    golden::expect_harmless(render(of.report()));
  }
}

}  // namespace
}  // namespace isoscale::analysis
