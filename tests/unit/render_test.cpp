// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/document_and_metrics.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "analysis/render/machine_and_preflight.hpp"
#include "analysis_test.hpp"
#include "golden.hpp"
#include "results_samples.hpp"

/// Reports in all formats and their parts, the documents that those for people are made of, the
/// summary, and the results of preflight checks.
namespace isoscale::analysis::render {
namespace {

TEST(RenderJson, TellsTheRanksInTheWorldBesideThoseOfThePoint) {
  results::RunData run = two_curves();
  run.points[2].world_rank = {0, 2, 1, 3};
  RunReport report = make_report(run, "a.h5", {});
  report.curves.at(0).points.at(2).causes.named = {
      {.kind = "slow rank", .ranks = {1, 3}, .size = 2, .text = ""}};
  const json document = json::parse(render_json({{&report, 1}}));
  const json& causes = document["runs"][0]["points"][2];
  const json& of_rank = causes["breakdown_of_rank"];
  ASSERT_EQ(of_rank.size(), 4U);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(of_rank[rank]["rank"], rank);
    EXPECT_EQ(of_rank[rank]["world_rank"], run.points[2].world_rank[rank]);
  }
  EXPECT_EQ(causes["findings"][0]["ranks"], (json{1, 3}));
  EXPECT_EQ(causes["findings"][0]["world_ranks"], (json{2, 3}));
}

TEST(Render, HasListsAndHeadingsWithoutRunsOrPoints) {
  EXPECT_EQ(json::parse(render_json(merge::Report{}))["runs"], json::array());
  const auto rows = parse_csv(rendered(samples::run(), render_csv));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(rows[0], IsSupersetOf({"run", "ranks", "efficiency", "wait", "reason"}));
  EXPECT_EQ(std::set<std::string>(rows[0].begin(), rows[0].end()).size(), rows[0].size());
}

TEST(Render, ClaimsWhatTheGoldenOnesDoAndFitsOn120Columns) {
  results::RunData run = two_curves();
  const std::string file = "isoscale-dp-pp-node17-20250301T120007Z.h5";
  golden::expect_claims(rendered(run, render_text, file), "report.txt");
  const std::string markdown = rendered(run, render_markdown, file);
  golden::expect_claims(markdown, "report.md");
  EXPECT_THAT(markdown.substr(0, markdown.find('\n')),
              AllOf(HasSubstr("92.5%"), HasSubstr("2 ranks"), HasSubstr("1 rank")));
  run.points[2].mesh = {.tp = 2, .dp = 2};
  golden::expect_fits(rendered(run, render_text), 120);
}

TEST(RenderText, SaysWhatIsPartialUnknownInjectedOrSuperlinear) {
  results::RunData partial = samples::run();
  partial.complete = false;
  partial.planned = 15;
  partial.warnings = {"something is odd"};
  results::RunData unsure = dp_run({1, 1, 1});
  unsure.points[1].step_times.resize(7);  // two of them warm-up
  for (int i = 0; i < 60; ++i) unsure.points[2].step_times.emplace_back(4, 1.0 + i);
  results::RunData injected = dp_run({1});
  injected.points[0].labels = {"injected"};
  injected.points[0].injections = {"slow-rank=0:2", "jitter=5%"};
  const std::vector<std::pair<results::RunData, std::vector<const char*>>> cases{
      {partial,
       {"PARTIAL", "0 of its 15 points", "WARNING  something is odd", "No point was measured"}},
      {unsure, {"interval: fewer than 6", "interval: the times of"}},
      {injected, {"injected: slow-rank=0:2, jitter=5%"}},
      {dp_run({1, 0.45, 0.1}),
       {"111.1%  ████████████████████│██▎\n", "250.0%  ████████████████████│████>\n"}}};
  for (const auto& [run, parts] : cases) {
    const std::string text = rendered(run, render_text);
    for (const char* const part : parts) EXPECT_THAT(text, HasSubstr(part));
  }
}

struct Item {
  std::string name;
  std::optional<statistics::Located> share{}, time{};
  std::string remark{};
};

constexpr std::array<Metric<Item>, 5> item_metrics{{
    {"name", "name", Unit::text, member<&Item::name>},
    {"share", "share", Unit::share, member<&Item::share>, "a share"},
    {"time", "time", Unit::seconds, member<&Item::time>, "", 0, Keep::without_interval},
    {"remark", "remark", Unit::text, member<&Item::remark>, "", 0, Keep::if_it_fits},
    {"never", "never", Unit::count, [](const Item&) { return Value(); }},
}};

DocumentTable table_of_items(const std::vector<Item>& items) {
  return table_of(std::span<const Metric<Item>>{item_metrics}, std::span<const Item>{items});
}

const std::vector<Item> two_items{{"first", statistics::Located{0.925, 0.918, 0.932},
                                   statistics::Located{6.703e-3, 6.67e-3, 6.737e-3}, "fine"},
                                  {"second", std::nullopt, statistics::Located{12.5e-3}, ""}};

TEST(Metrics, MakeAColumnWhereAnItemHasAValue) {
  const DocumentTable table = table_of_items(two_items);
  EXPECT_THAT(mapped(table.columns, &DocumentColumn::key),
              ElementsAre("name", "share", "time", "remark"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][1]["value"], 0.925);
  EXPECT_TRUE(table.rows[1][1].is_null());
  EXPECT_EQ(table_of_items({}).columns.size(), 0U);
}

TEST(DocumentText, LosesIntervalsThenColumnsThenEndsOfWords) {
  const DocumentTable table = table_of_items(two_items);
  EXPECT_THAT(to_text({table}, 52),
              AllOf(HasSubstr("fine"), Not(HasSubstr("±")), HasSubstr("92.5% (91.8% to 93.2%)")));
  EXPECT_THAT(to_text({table}, 44), AllOf(Not(HasSubstr("fine")), HasSubstr("second")));
  std::vector<Item> items = two_items;
  items[0].name = std::string(200, 'x');
  for (const std::size_t columns : {60U, 80U, 110U}) {
    const std::string text = to_text({table_of_items(items)}, columns);
    EXPECT_THAT(text, HasSubstr("xxx…"));
    for (const std::string& line : lines_of(text)) EXPECT_LE(display_width(line), columns) << line;
  }
}

TEST(Document, EscapesWhatCouldBeMarkupOrMoveTheCursor) {
  const std::string bad = "<b>|\x1b[2J\nb";
  const Document document{Heading{bad}, Paragraph{bad}, std::vector<Note>{{bad, bad}},
                          table_of_items({{bad, std::nullopt, std::nullopt, bad}})};
  const std::string markdown = to_markdown(document), text = to_text(document, 110);
  EXPECT_THAT(markdown, Not(AnyOf(HasSubstr("<b>"), HasSubstr("b>|"))));
  for (const std::string& of : {markdown, text}) EXPECT_THAT(of, Not(HasSubstr("\x1b")));
  EXPECT_EQ(lines_of(text).size(), 5U);
}

/// Three launches on one node, of which one has an oversubscribed point too; two on two nodes; one
/// on another machine.
std::vector<results::RunData> launches() {
  std::vector<results::RunData> runs{launch_of("a1", 1, 4, 0.0410), launch_of("a2", 1, 4, 0.0400),
                                     launch_of("a3", 1, 4, 0.0396)};
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
  golden::expect_claims(render_markdown(of.report()), "launches.md");
  golden::expect_fits(render_text(of.report()), 120);
}

TEST(RenderLaunches, WarningsAreInEveryFormat) {
  const JoinedLaunches of{{launch_of("a", 1, 2, 0.1)}};
  const merge::Report warned{.runs = of.reports, .warnings = {"a.h5 is a copy"}};
  EXPECT_THAT(render_text(warned), HasSubstr("WARNING  a.h5 is a"));
  EXPECT_THAT(render_markdown(warned), HasSubstr("WARNING: a.h5 is a"));
  EXPECT_EQ(json::parse(render_json(warned))["warnings"][0], "a.h5 is a copy");
}

TEST(RenderLaunches, ACurveOfSkippedPointsIsItsReasons) {
  results::RunData run = launch_of("a", 1, 2, 0.1);
  run.points[0].status = results::PointStatus::skipped;
  run.points[0].reason = "does not divide";
  run.points[0].step_times.clear();
  std::vector<results::RunData> runs{run, run};
  runs[1].id = "b";
  const JoinedLaunches of{std::move(runs)};
  const merge::Report alone{.runs = std::span{of.reports}.first(1)};
  for (const std::string& text : {render_text(alone), render_markdown(alone)}) {
    EXPECT_THAT(text, HasSubstr("2 ranks: does not"));
    EXPECT_THAT(text, Not(HasSubstr("speed-up")));
  }
  EXPECT_THAT(render_text(of.report()), HasSubstr("launches 1, 2: skipped:"));
  EXPECT_THAT(render_text(of.report()), Not(HasSubstr("baseline none")));
}

TEST(RenderLaunches, LetNoControlCharactersThrough) {
  std::vector<results::RunData> runs{hostile_run(), hostile_run()};
  for (auto& run : runs) {
    for (auto& point : run.points) point.labels.clear();
  }
  runs[1].mpi_library += "x\x1b[2J";
  const JoinedLaunches of{std::move(runs)};
  for (const auto& render : {render_text, render_json, render_csv, render_markdown}) {
    golden::expect_harmless(render(of.report()));
  }
}

std::string summarised(const results::RunData& run, std::size_t columns = 110) {
  return render_summary(OneRun{run}.report(), columns);
}

/// The indented line that begins with `word`; "" without one.
std::string line_of(const std::string& text, const std::string& word) {
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("  " + word)) return line;
  }
  return "";
}

/// Two curves, of which some points failed or were skipped, and micro-benchmarks.
results::RunData run_of_everything() {
  results::RunData run = two_curves();
  run.complete = false;
  for (int i = 0; i < 17; ++i) run.warnings.push_back("warning number " + std::to_string(i));
  for (auto&& point : {collectives(6), gemms(7), pairs(8), samples::memory(9), overlaps(10)}) {
    run.points.push_back(point);
  }
  return run;
}

TEST(Summary, ClaimsWhatTheGoldenOneDoesAndFitsOnOneScreen) {
  golden::expect_claims(summarised(run_of_everything()), "summary.txt");
  results::RunData run = two_curves();
  run.warnings.assign(17, std::string(300, 'w'));
  run.points.push_back(gemms(6));
  run.points.push_back(pairs(7));
  for (const std::size_t columns : {80U, 110U}) {
    EXPECT_LE(lines_of(summarised(run, columns)).size(), 40U);
    golden::expect_fits(summarised(run, columns), columns);
  }
}

TEST(Summary, SaysWhereARunHung) {
  results::RunData run = two_curves();
  run.complete = false;
  run.points.resize(3);
  run.points[2].status = results::PointStatus::failed;
  run.points[2].verified.reset();
  run.points[2].step_times.clear();
  run.points[2].reason = "hang: rank 1 is in gemm; rank 1 did not arrive at all_reduce";
  const std::string text = summarised(run);
  EXPECT_THAT(text, HasSubstr("PARTIAL"));
  EXPECT_THAT(line_of(text, "FAILED"), AllOf(HasSubstr("1 of 3"), HasSubstr("hang: rank 1 is")));
  run.points.erase(run.points.begin(), run.points.begin() + 2);
  EXPECT_THAT(summarised(run), AllOf(HasSubstr("FAILED"), HasSubstr("not measured: ")));
}

TEST(Summary, NamesTheLargestCausesUnlessTheyDoNotExplainTheLoss) {
  OneRun one{dp_curve()};
  auto& waterfall = one.made.curves.front().points[1].causes.waterfall;
  const double step = waterfall.value().measured;
  const auto line = [&] { return line_of(render_summary(one.report(), 130), "dp"); };
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
  EXPECT_THAT(render_sections(one.report(), Sections::parse("waterfall")),
              AllOf(HasSubstr("-117.8%"), Not(HasSubstr("210.0%"))));
}

TEST(Summary, HasTheMostTokensOfAllMeshes) {
  results::RunData run = samples::run({bench_point(0, "infer", 4), bench_point(1, "infer", 4)});
  run.points[0].mesh = {.tp = 4};
  add_batch(run.points[0], 8, 0.02, 0.002);     // 4 k tokens/s
  add_batch(run.points[1], 8, 0.05, 0.005);     // 6.4 k
  add_batch(run.points[1], 9, 0.01, 0.001, 1);  // 36 k, of one play
  const std::string text = summarised(run);
  EXPECT_THAT(line_of(text, "infer,"), AllOf(HasSubstr("6.4 k"), HasSubstr("TPOT 5 ms ±"),
                                             HasSubstr("n=11"), HasSubstr("batch 8, dp=4")));
  EXPECT_THAT(text, Not(HasSubstr("36 k")));
  run.points.resize(1);
  run.points[0].rows.clear();
  add_batch(run.points[0], 8, 0.02, 0.002, 1);
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
  results::RunData run = samples::run({bench_point(0, "serve", 2)});
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
  results::RunData run = samples::run({measured(0, {.tp = 2}, 1), measured(1, {.tp = 4}, 0.6),
                                       measured(2, {.dp = 2}, 1), measured(3, {.dp = 4}, 0.6)});
  const std::string meshes = summarised(run);
  EXPECT_NE(line_of(meshes, "dp, tp=4"), "") << meshes;
  EXPECT_NE(line_of(meshes, "dp, dp=4"), "") << meshes;
  run.points[0].mesh = {.dp = 2}, run.points[1].mesh = {.dp = 4};
  run.points[2].options["microbatch"] = run.points[3].options["microbatch"] = "4";
  const std::string microbatches = summarised(run);
  EXPECT_NE(line_of(microbatches, "dp, microbatch=2"), "") << microbatches;
  EXPECT_NE(line_of(microbatches, "dp, microbatch=4"), "") << microbatches;
}

TEST(Summary, TellsFindingsOfOneRuleOnce) {
  results::RunData run = two_curves();
  for (const results::PointData& point : two_curves().points) {
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

TEST(Sections, PrintTheirPartAlone) {
  const OneRun one{two_curves()};
  const auto text = [&](const char* names) {
    return render_sections(one.report(), Sections::parse(names));
  };
  EXPECT_THAT(text("pop"), AllOf(HasSubstr("serialisation"), Not(HasSubstr("step time")),
                                 Not(HasSubstr("ideal step")), Not(HasSubstr("findings"))));
  EXPECT_THAT(text("waterfall,findings"), AllOf(HasSubstr("ideal step"), HasSubstr("findings"),
                                                Not(HasSubstr("serialisation"))));
  EXPECT_THAT(text("legend"), AllOf(HasSubstr("median"), Not(HasSubstr("92.5%"))));
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
  EXPECT_EQ(count_checks(preflight_sample()), "1 ok, 2 not checked, 1 warning, 1 stop");
  EXPECT_EQ(count_checks({}), "");
  const std::string text = render_checks_text(preflight_sample());
  EXPECT_LT(text.find("\n  stop (allowed)"), text.find("\n  warning"));
  EXPECT_LT(text.find("\n  warning"), text.find("\n  ok"));
  for (const char* const part : {"no NVML\n    xid, ecc\n", "cost: half", "fix: reseat"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  // A report has them only where something is wrong.
  const Facts facts = check_facts(preflight_sample());
  ASSERT_EQ(facts.size(), 3U);
  EXPECT_EQ(facts[0].second, count_checks(preflight_sample()));
  EXPECT_THAT(facts[1].second, HasSubstr("port-rate"));
  EXPECT_THAT(facts[2].second, HasSubstr("allowed"));
}

TEST(Checks, AreObjectsInJsonAndDamagedFactsAreNone) {
  const auto document = json::parse(render_checks_json(preflight_sample()));
  EXPECT_EQ(document["facts"]["device"], "host");
  EXPECT_EQ(document["results"].size(), 5U);
  EXPECT_EQ(document["results"][1]["verdict"], "warning");
  EXPECT_EQ(document["results"][0]["host"], nullptr);
  EXPECT_EQ(document["results"][2]["allowed"], true);
  const auto facts_of = [](const std::string& text) {
    results::PreflightData preflight = preflight_sample();
    preflight.facts = text;
    return json::parse(render_checks_json(preflight))["facts"];
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
}  // namespace isoscale::analysis::render
