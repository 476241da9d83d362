// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/render.hpp"
#include "analysis/page/page.hpp"
#include "analysis/render/curve_tables.hpp"
#include "analysis/render/document.hpp"
#include "analysis/render/text.hpp"
#include "golden.hpp"
#include "launch_samples.hpp"
#include "reported.hpp"

/// Reports in all formats, and the documents that those for people are made of.
namespace isoscale::analysis {
namespace {

TEST(RenderJson, TellsTheRanksInTheWorldBesideThoseOfThePoint) {
  results::RunData run = samples::two_curves();
  run.points[2].world_rank = {0, 2, 1, 3};
  RunReport report = make_report(run, "a.h5", {});
  report.curves.at(0).points.at(2).causes.named = {
      {.kind = "slow rank", .ranks = {1, 3}, .size = 2, .text = ""}};
  const json document = json::parse(render::render_json({{&report, 1}}));
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

TEST(RenderJson, HasEveryMetricThatIsNotForPeopleAloneAndSoHasThePage) {
  const OneRun one{samples::two_curves()};
  const json document = json::parse(render::render_json(one.report()));
  const json shown = page::page_data(one.report());
  for (const json& runs : {document["runs"], shown["report"]["runs"]}) {
    for (const auto& metric : render::point_metrics()) {
      if (metric.heading.empty()) continue;  // lists and objects that not every point has
      EXPECT_EQ(runs[0]["points"][1].contains(metric.name()), !metric.is_for_people())
          << metric.key;
    }
  }
}

TEST(Render, HasListsAndHeadingsWithoutRunsOrPoints) {
  EXPECT_EQ(json::parse(render::render_json(merge::Report{}))["runs"], json::array());
  const auto rows = parse_csv(rendered(samples::run(), render::render_csv));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(rows[0], IsSupersetOf({"run", "ranks", "efficiency", "wait", "reason"}));
  EXPECT_EQ(std::set<std::string>(rows[0].begin(), rows[0].end()).size(), rows[0].size());
}

TEST(Render, ClaimsWhatTheGoldenOnesDoAndFitsOn120Columns) {
  results::RunData run = samples::two_curves();
  const std::string file = "isoscale-dp-pp-node17-20250301T120007Z.h5";
  golden::expect_claims(rendered(run, render::render_text, file), "report.txt");
  const std::string markdown = rendered(run, render::render_markdown, file);
  golden::expect_claims(markdown, "report.md");
  EXPECT_THAT(markdown.substr(0, markdown.find('\n')),
              AllOf(HasSubstr("92.5%"), HasSubstr("2 ranks"), HasSubstr("1 rank")));
  run.points[2].mesh = {.tp = 2, .dp = 2};
  golden::expect_fits(rendered(run, render::render_text), 120);
}

TEST(RenderText, SaysWhatIsPartialUnknownInjectedOrSuperlinear) {
  using samples::dp_run;
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
    const std::string text = rendered(run, render::render_text);
    for (const char* const part : parts) EXPECT_THAT(text, HasSubstr(part));
  }
}

struct Item {
  std::string name;
  std::optional<statistics::Located> share{}, time{};
  std::string remark{};
};

constexpr std::array<render::Metric<Item>, 5> item_metrics{{
    {"name", "name", Unit::text, render::member<&Item::name>},
    {"share", "share", Unit::share, render::member<&Item::share>, "a share"},
    {"time", "time", Unit::seconds, render::member<&Item::time>, "", 0,
     render::Keep::without_interval},
    {"remark", "remark", Unit::text, render::member<&Item::remark>, "", 0,
     render::Keep::if_it_fits},
    {"never", "never", Unit::count, [](const Item&) { return render::Value(); }},
}};

render::DocumentTable table_of_items(const std::vector<Item>& items) {
  return render::table_of(std::span<const render::Metric<Item>>{item_metrics},
                          std::span<const Item>{items});
}

const std::vector<Item> two_items{{"first", statistics::Located{0.925, 0.918, 0.932},
                                   statistics::Located{6.703e-3, 6.67e-3, 6.737e-3}, "fine"},
                                  {"second", std::nullopt, statistics::Located{12.5e-3}, ""}};

TEST(Metrics, MakeAColumnWhereAnItemHasAValue) {
  const render::DocumentTable table = table_of_items(two_items);
  EXPECT_THAT(mapped(table.columns, &render::DocumentColumn::key),
              ElementsAre("name", "share", "time", "remark"));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][1]["value"], 0.925);
  EXPECT_TRUE(table.rows[1][1].is_null());
  EXPECT_EQ(table_of_items({}).columns.size(), 0U);
}

TEST(DocumentText, ShowsNumbersWithUnitsAndIntervals) {
  EXPECT_THAT(lines_of(render::to_text({table_of_items(two_items)}, 110)),
              ElementsAre("  name                     share            time  remark",
                          "  first   92.5% (91.8% to 93.2%)  6.703 ms ±0.5%  fine",
                          "  second                       —         12.5 ms"));
}

TEST(DocumentText, LosesIntervalsThenColumnsThenEndsOfWords) {
  const render::DocumentTable table = table_of_items(two_items);
  EXPECT_THAT(render::to_text({table}, 52),
              AllOf(HasSubstr("fine"), Not(HasSubstr("±")), HasSubstr("92.5% (91.8% to 93.2%)")));
  EXPECT_THAT(render::to_text({table}, 44), AllOf(Not(HasSubstr("fine")), HasSubstr("second")));
  std::vector<Item> items = two_items;
  items[0].name = std::string(200, 'x');
  for (const std::size_t columns : {60U, 80U, 110U}) {
    const std::string text = render::to_text({table_of_items(items)}, columns);
    EXPECT_THAT(text, HasSubstr("xxx…"));
    for (const std::string& line : lines_of(text))
      EXPECT_LE(render::display_width(line), columns) << line;
  }
}

TEST(DocumentText, WrapsNotesBesideTheirKeysOrCutsThem) {
  const render::Document document{
      render::Heading{"Title"},
      std::vector<render::Note>{{"~13%", "one two three four five"},
                                {"", "six seven eight nine", render::Lines::one}},
      render::Paragraph{"ten eleven twelve thirteen", render::Lines::one}};
  EXPECT_THAT(lines_of(to_text(document, 20)),
              ElementsAre("Title", "  ~13%  one two", "        three four", "        five",
                          "        six seven e…", "ten eleven twelve t…"));
}

TEST(DocumentMarkdown, HasAllColumnsAndIntervals) {
  const render::Document document{
      render::Heading{"Title"}, table_of_items(two_items), render::Heading{"More"},
      std::vector<render::Note>{{"~13%", "one"}, {"", "two", render::Lines::one}}};
  EXPECT_THAT(
      lines_of(render::to_markdown(document)),
      ElementsAre("## Title", "", "| name | share | time | remark |", "|---|---:|---:|---|",
                  "| first | 92.5% \\(91.8% to 93.2%\\) | 6.703 ms ±0.5% | fine |",
                  "| second | — | 12.5 ms |  |", "", "### More", "", "- \\~13%: one", "- two", ""));
}

TEST(Document, EscapesWhatCouldBeMarkupOrMoveTheCursor) {
  const std::string bad = "<b>|\x1b[2J\nb";
  const render::Document document{render::Heading{bad}, render::Paragraph{bad},
                                  std::vector<render::Note>{{bad, bad}},
                                  table_of_items({{bad, std::nullopt, std::nullopt, bad}})};
  const std::string markdown = render::to_markdown(document), text = to_text(document, 110);
  EXPECT_THAT(markdown, Not(AnyOf(HasSubstr("<b>"), HasSubstr("b>|"))));
  for (const std::string& of : {markdown, text}) EXPECT_THAT(of, Not(HasSubstr("\x1b")));
  EXPECT_EQ(lines_of(text).size(), 5U);
}

/// Three launches on one node, of which one has an oversubscribed point too; two on two nodes; one
/// on another machine.
std::vector<results::RunData> launches() {
  std::vector<results::RunData> runs = samples::three_launches();
  samples::add(runs[2], {.dp = 2}, 0.0790).labels = {"oversubscribed"};
  for (const auto& [id, step] : {std::pair{"b1", 0.0220}, {"b2", 0.0230}}) {
    runs.push_back(samples::launch(id, 2, 4));
    samples::add(runs.back(), {.tp = 4, .dp = 2}, step);
  }
  runs.push_back(samples::launch_of("c1", 4, 4, 0.0110));
  for (auto& facts : runs.back().rank_facts) facts.text["cpu_model"] = "Intel Xeon 8480";
  return runs;
}

TEST(RenderLaunches, ClaimsWhatTheGoldenOnesDoAndFitsOn120Columns) {
  const samples::JoinedLaunches of{launches()};
  golden::expect_claims(render::render_markdown(of.report()), "launches.md");
  golden::expect_fits(render::render_text(of.report()), 120);
}

TEST(RenderLaunches, OneLaunchIsShownAsBeforeWithItsWarnings) {
  const samples::JoinedLaunches of{{samples::launch_of("a", 1, 2, 0.1)}};
  const merge::Report alone{.runs = of.reports};
  EXPECT_EQ(render::render_text(of.report()), render::render_text(alone));
  EXPECT_EQ(render::render_markdown(of.report()), render::render_markdown(alone));
  EXPECT_THAT(render::render_text(alone), Not(HasSubstr("over launches")));
  const merge::Report warned{.runs = of.reports, .warnings = {"a.h5 is a copy"}};
  EXPECT_THAT(render::render_text(warned), HasSubstr("WARNING  a.h5 is a"));
  EXPECT_THAT(render::render_markdown(warned), HasSubstr("WARNING: a.h5 is a"));
  EXPECT_EQ(json::parse(render::render_json(warned))["warnings"][0], "a.h5 is a copy");
}

/// A launch on one node of so many ranks, with a trace of one GEMM.
results::RunData traced_launch(const std::string& id, int ranks, double step) {
  results::RunData run = samples::launch_of(id, 1, ranks, step);
  const auto count = static_cast<std::size_t>(ranks);
  samples::set_trace(
      run.points[0],
      samples::point({.dp = ranks}, std::vector(count, samples::Script{}.compute()),
                     samples::step({0, 100}, std::vector<samples::Spans>(count, {{0, 100}}))));
  samples::add_traced_steps(run.points[0], step, 1.01);
  return run;
}

TEST(RenderLaunches, TablesSayWhoseTheyAre) {
  std::vector<results::RunData> runs{traced_launch("a", 2, 0.3), traced_launch("b", 2, 0.2),
                                     traced_launch("c", 2, 0.1)};
  {
    const samples::JoinedLaunches of{runs};  // the second is the typical one
    const std::string text = render::render_text(of.report());
    for (const char* const title : {"mean over ranks, launch 2\n", "those below it, launch 2\n",
                                    "1 traced step, launch 2\n"}) {
      EXPECT_THAT(text, HasSubstr(title));
    }
    EXPECT_THAT(render::render_markdown(of.report()), HasSubstr("over ranks, launch 2:\n"));
    EXPECT_THAT(render::render_text({.runs = std::span{of.reports}.first(1)}),
                Not(HasSubstr("launch 1")));
  }
  runs.push_back(traced_launch("d", 4, 0.08));
  EXPECT_THAT(render::render_text(samples::JoinedLaunches{std::move(runs)}.report()),
              AllOf(HasSubstr("launch 2 on 2"), HasSubstr("launch 4 on 4")));
}

TEST(RenderLaunches, ACurveOfSkippedPointsIsItsReasons) {
  results::RunData run = samples::launch_of("a", 1, 2, 0.1);
  run.points[0].status = results::PointStatus::skipped;
  run.points[0].reason = "does not divide";
  run.points[0].step_times.clear();
  std::vector<results::RunData> runs{run, run};
  runs[1].id = "b";
  const samples::JoinedLaunches of{std::move(runs)};
  const merge::Report alone{.runs = std::span{of.reports}.first(1)};
  for (const std::string& text : {render::render_text(alone), render::render_markdown(alone)}) {
    EXPECT_THAT(text, HasSubstr("2 ranks: does not"));
    EXPECT_THAT(text, Not(HasSubstr("speed-up")));
  }
  EXPECT_THAT(render::render_text(of.report()), HasSubstr("launches 1, 2: skipped:"));
  EXPECT_THAT(render::render_text(of.report()), Not(HasSubstr("baseline none")));
}

/// Launches on one node are in tests/stored.
TEST(RenderLaunches, JsonHasTheCurves) {
  const samples::JoinedLaunches of{launches()};
  const json document = json::parse(render::render_json(of.report()));
  ASSERT_EQ(document["runs"].size(), 6U);
  ASSERT_EQ(document["curves"].size(), 2U);
  const json& curve = document["curves"][0];
  expect_holds(curve, {{"fingerprint", of.joined.curves[0].fingerprint},
                       {"baseline", 4},
                       {"machine", {{"CPU", "AMD EPYC 7763"}}},
                       {"left_out", {{{"reason", "oversubscribed"}, {"ranks", 2}}}}});
  EXPECT_EQ(curve["apart"].size(), 1U);
  ASSERT_EQ(curve["points"].size(), 2U);
  expect_holds(curve["points"][0]["launches"].at(1), {{"run", "a2"}, {"typical", true}});
  expect_holds(curve["points"][0], {{"step_time", {{"launches", 3}}}, {"spread", 0.035}});
  expect_holds(curve["points"][1], {{"nodes", 2},
                                    {"ranks_per_node", {{"fewest", 4}, {"most", 4}}},
                                    {"axes", {{"tp", "intra-node"}, {"dp", "inter-node"}}},
                                    {"step_time", {{"lower", nullptr}}},  // two launches
                                    {"efficiency", 0.04 / 0.0225 / 2}});
  EXPECT_EQ(curve["points"][1]["axes"].size(), 2U);
}

TEST(RenderLaunches, LetNoControlCharactersThrough) {
  std::vector<results::RunData> runs{samples::hostile_run(), samples::hostile_run()};
  for (auto& run : runs) {
    for (auto& point : run.points) point.labels.clear();
  }
  runs[1].mpi_library += "x\x1b[2J";
  const samples::JoinedLaunches of{std::move(runs)};
  for (const auto& render :
       {render::render_text, render::render_json, render::render_csv, render::render_markdown}) {
    golden::expect_harmless(render(of.report()));
  }
}

}  // namespace
}  // namespace isoscale::analysis
