// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/compare_render.hpp"
#include "analysis/compare/comparison_internals.hpp"
#include "analysis/curves_and_baselines.hpp"
#include "analysis/render/escaped_text_and_tables.hpp"
#include "compare_samples.hpp"
#include "golden.hpp"
#include "results/records/point_facts.hpp"

/// Which points of which sides are compared, what is refused, and the formats of comparisons.
namespace isoscale::analysis::compare {
namespace {

using Runs = std::vector<results::RunData>;

std::vector<std::string> whats(const Comparison& of) { return mapped(of.unlike, &Unlike::what); }

TEST(Compare, LaunchesOfFewStepsCountBesideOthers) {
  auto b = side_b(1.2);
  for (const std::size_t run : {0U, 1U}) {
    for (results::PointData& point : b[run].points) point.step_times.resize(4);
  }
  const Compared of{against_a(b)};
  EXPECT_EQ(of->differences[1].launches, 3U);
  EXPECT_EQ(of->differences[1].verdict, Verdict::slower);
  EXPECT_TRUE(
      results::has_label(of->curves[0].sides[1]->curve.points[1].labels, results::few_steps));
}

TEST(Compare, LaunchesThatDoNotCountAreInTheTable) {
  auto b = side_b();
  b[2].points[1].status = results::PointStatus::failed;
  b[2].points[1].reason = "a deadlock";
  const Compared of{against_a(b)};
  EXPECT_THAT(render_text(*of), testing::ContainsRegex(" 2 +B +dp=2 +2 of 3 "));
  EXPECT_THAT(curve_facts(*of, 0).back().second, HasSubstr("a deadlock"));
}

TEST(Compare, SidesAreNamedByFilesOrMachines) {
  std::vector<Runs> runs{side("a", around(1)), side("b", {1})};
  const auto names = [&](const std::vector<std::vector<std::string>>& files) {
    std::vector<std::vector<RunReport>> reports(files.size());
    for (std::size_t s = 0; s < files.size(); ++s) {
      for (std::size_t i = 0; i < files[s].size(); ++i) {
        reports[s].push_back(make_report(runs[s][i], files[s][i], {}));
      }
    }
    return default_names({reports.begin(), reports.end()});
  };
  EXPECT_THAT(names({{"old-1.h5", "old-2.h5"}, {"x/new.h5"}}), ElementsAre("old", "new"));
  EXPECT_THAT(names({{"old/r1.h5", "old/r2.h5"}, {"new/r.h5"}}), ElementsAre("old", "new"));
  EXPECT_THAT(names({{"a<b>.h5"}, {"c.h5"}}), IsEmpty()) << "letters";
}

TEST(Compare, WhatIsUnlikeIsNamedLineByLine) {
  const auto each = [](void (*change)(results::PointData&)) {
    return [change](Runs& b) { b = changed(b, change); };
  };
  const auto each_run = [](void (*change)(results::RunData&)) {
    return [change](Runs& b) { std::ranges::for_each(b, change); };
  };
  const std::vector<std::string> of_all{"A (a1.h5, a2.h5, a3.h5)", "B (b1.h5, b2.h5, b3.h5)"};
  struct Case {
    std::string what;
    std::function<void(Runs&)> change;
    std::vector<std::string> line{};
    std::optional<std::size_t> lines_if_none_else{};
  };
  for (const Case& at : std::vector<Case>{
           {"model", each([](auto& at) { at.model = "small"; }), of_all},
           {"model layers", each([](auto& at) { at.model_shape["layers"] = "8"; }), of_all},
           {"dtype", each(make_bf16), of_all},
           {"scaling", each([](auto& at) { at.scaling = "weak"; }), of_all},
           {"option bucket", each([](auto& at) { at.options["bucket"] = "1MiB"; }), of_all},
           {"mesh", each([](auto& at) { at.mesh = {.tp = at.ranks}; }), of_all},
           {"labels", each(make_oversubscribed), of_all},
           {"work", each([](auto& at) { at.throughput_unit = "samples/s"; }), {}, 3},
           {"machine MPI", [](Runs& b) { b[0].mpi_library = "MPICH 4.2"; }, {}, 1},
           {"executor", each_run([](auto& run) { run.device = "cuda"; }), {}, 1},
           {"setting fill",
            each_run([](auto& run) { run.config_toml = "fill = \"replicas\"\n"; }),
            {},
            1},
           {"verification",
            [](Runs& b) {
              b[1].points[2].verified = false;
              b[1].points[2].verification = "layer3 is off";
            },
            {"layer3 is off in B", "(b2.h5)", "4 ranks"},
            1}}) {
    SCOPED_TRACE(at.what);
    Runs a = side("a", around(1)), b = side_b();
    for (results::RunData& run : a) run.config_toml = "fill = \"idle\"\n";
    for (results::RunData& run : b) run.config_toml = "fill = \"idle\"\n";
    at.change(b);
    const Compared of{{a, b}};
    EXPECT_TRUE(of->refused && of->differences.empty());
    EXPECT_THAT(whats(*of), Contains(at.what));
    if (at.lines_if_none_else) {
      EXPECT_THAT(whats(*of), std::vector(*at.lines_if_none_else, at.what));
    }
    for (const auto& part : at.line) EXPECT_THAT(text_of(of->unlike.front()), HasSubstr(part));
    EXPECT_FALSE(of->machines.empty() && of->curves.empty());
  }
}

TEST(Compare, WhatAllCurvesDifferInIsSaidOnce) {
  auto a = side("a", around(1)), b = side_b();
  for (auto* const runs : {&a, &b}) add_tp_curve(*runs);
  b = changed(b, [](results::PointData& at) {
    at.dtype = "bf16";
    if (at.workload == "tp" && at.ranks > 1) at.labels = {"oversubscribed"};
  });
  const Compared of{{a, b}};
  ASSERT_EQ(of->curves.size(), 2U);
  EXPECT_EQ(of->unlike.size(), 4U) << "dtype of both, labels of 2 and 4 ranks";
  EXPECT_THAT(unlike_lines(*of),
              ElementsAre(AllOf(StartsWith("dtype: f32 in A"), HasSubstr("all 2 curves")),
                          AllOf(StartsWith("labels: none in A"), HasSubstr("; tp, "),
                                EndsWith(": 2, 4 ranks"))));
}

TEST(Compare, InjectionsAreUnlikeWhereTheyDiffer) {
  const auto inject = [](results::PointData& at, const char* what) {
    at.labels = {"injected"};
    at.injections = {what};
  };
  auto b = side_b();
  inject(b[2].points[1], "slow-rank=1:1.2");
  const Compared of{against_a(b)};
  EXPECT_TRUE(of->refused);
  EXPECT_THAT(whats(*of), ElementsAre("labels", "injected"));
  EXPECT_THAT(text_of(of->unlike[0]), HasSubstr("injected in B (b3.h5)"));
  EXPECT_THAT(unlike_lines(*of), ElementsAre(HasSubstr("(slow-rank=1:1.2) in B (b3.h5)")));
  const Compared both{
      {changed(side("a", around(1)), [&](auto& at) { inject(at, "slow-rank=1:1.2"); }),
       changed(side_b(), [&](auto& at) { inject(at, "slow-rank=1:1.5"); })}};
  EXPECT_THAT(whats(*both), ElementsAre("injected", "injected", "injected"));
}

TEST(Compare, AnywayMarksThePointsThatAreUnlikeAndNoOthers) {
  auto meshes = side_b(), wrong = side_b(1.1);
  for (results::RunData& run : meshes) run.points[2].mesh = {.tp = 4};
  for (results::RunData& run : wrong) {
    run.points[2].verified = false;
    run.points[2].status = results::PointStatus::failed;
  }
  for (const auto& [b, mark] : {std::pair{meshes, "mesh"}, {wrong, "verification"}}) {
    const Compared of{against_a(b), {.anyway = true}};
    EXPECT_FALSE(of->refused);
    EXPECT_EQ(of->differences.size(), 3U);
    EXPECT_THAT(marks_of(*of, 0, 1, 4), ElementsAre(mark));
    EXPECT_THAT(marks_of(*of, 0, 1, 2), IsEmpty());
  }
}

/// A variable that is set to nothing has a value.
TEST(Compare, MachinesMayDifferAndRunsMayNotHaveEnded) {
  using Environment = std::vector<std::pair<std::string, std::string>>;
  const Environment none, nothing{{"UCX_TLS", ""}}, rc{{"UCX_TLS", "rc"}};
  for (const auto& [of_a, of_b, shown_a, shown_b] : {std::tuple{none, rc, "unset", "rc"},
                                                     {nothing, rc, "", "rc"},
                                                     {nothing, none, "", "unset"}}) {
    auto sides = against_a(side_b());
    for (results::RunData& run : sides[0]) run.environment = of_a;
    for (results::RunData& run : sides[1]) run.environment = of_b;
    sides[1][0].complete = false;
    const Compared of{std::move(sides)};
    EXPECT_FALSE(of->refused);
    ASSERT_EQ(of->machines.size(), 1U);
    EXPECT_EQ(of->machines[0].name, "UCX_TLS");
    EXPECT_THAT(of->machines[0].values, ElementsAre(shown_a, shown_b));
    EXPECT_THAT(of->warnings, ElementsAre(HasSubstr("1 of 3 runs")));
  }
}

TEST(Compare, EveryFormatForPeopleShowsTheWarningsAlsoWhereTheGateDecides) {
  auto sides = against_a(side_b());
  sides[1][1].complete = false;
  const Compared of{std::move(sides), {.gate = 0.05}};
  EXPECT_THAT(of->warnings, ElementsAre(HasSubstr("1 of 3 runs")));
  for (const std::string& text : {render_text(*of), render_markdown(*of), render_junit(*of)}) {
    EXPECT_THAT(text, HasSubstr("1 of 3 runs"));
  }
}

TEST(Compare, WhatOnlyOneSideHasIsListed) {
  auto b = side_b();
  for (results::RunData& run : b) {
    run.points.pop_back();
    add(run, {.dp = 3}, 0.04);
  }
  const Compared of{against_a(b)};
  EXPECT_FALSE(of->refused);
  EXPECT_EQ(of->differences.size(), 2U);
  ASSERT_EQ(of->only.size(), 2U);
  EXPECT_THAT(only_sentence(*of, of->only[0]), HasSubstr("ranks only in A"));
  EXPECT_THAT(of->only[0].ranks, ElementsAre(4));
  EXPECT_THAT(only_sentence(*of, of->only[1]), HasSubstr("ranks only in B"));
  EXPECT_THAT(of->only[1].ranks, ElementsAre(3));
}

TEST(Compare, NothingInCommonIsRefused) {
  const auto to_tp = [](results::PointData& at) { at.workload = "tp"; };
  const auto sides = against_a(changed(side_b(), to_tp));
  EXPECT_THAT(testing_support::usage_error([&] { const Compared of{sides}; }),
              HasSubstr("no point in common"));
}

TEST(Compare, ExactCurvesArePairedBeforeNearOnes) {
  auto a = side("a", around(1)), b = side_b();
  for (results::RunData& run : a) add(run, {.tp = 4}, 0.04);
  for (results::RunData& run : b) {
    run.points.pop_back();
    add(run, {.tp = 4}, 0.04);
  }
  const Compared of{{a, b}};
  EXPECT_FALSE(of->refused) << testing::PrintToString(whats(*of));
}

TEST(Compare, TheBaselineIsCommon) {
  auto b = side_b();
  for (results::RunData& run : b) run.points.erase(run.points.begin());
  const Compared of{against_a(b)};
  EXPECT_EQ(of->curves[0].baseline, 2);
  for (const auto& at : of->curves[0].sides) {
    EXPECT_EQ(point_of(at->curve, 2)->efficiency, 1);
  }
  const Compared four{against_a(side_b()), {.baseline = 4}};
  EXPECT_EQ(four->curves[0].baseline, 4);
  const Compared node{against_a(side_b()), {.whole_node = true}};
  EXPECT_EQ(node->curves[0].baseline, 4);
}

TEST(Compare, RatesOverWhatTheMachineHas) {
  auto a = side("a", around(1)), b = side_b();
  for (auto* const runs : {&a, &b}) {
    for (results::RunData& run : *runs) {
      run.calibration = {.curves = {{.op = "p2p",
                                     .link_class = "same node",
                                     .implementation = "library",
                                     .members = 2,
                                     .nodes = 1,
                                     .bandwidth = results::Fitted{.value = 8e9}}},
                         .ceilings = {{.dtype = "f32", .cache = "cold", .rate = 40e9}}};
    }
  }
  const Compared of{{a, b}};
  const SideCurve& first = *of->curves[0].sides[0];
  // 1.2 GFLOP in 30 ms on 4 ranks.
  ASSERT_TRUE(first.of_peak[2].value);
  EXPECT_NEAR(*first.of_peak[2].value, 1.2e9 / 4 / 0.030 / 40e9, 1e-3);
  EXPECT_THAT(first.of_peak[2].against, HasSubstr("best multiplication"));
  EXPECT_NEAR(*first.per_link[2].value, 1024 / 0.030 / 8e9, 1e-8);
  EXPECT_THAT(first.per_link[2].against, HasSubstr("same node, 8 GB/s"));
  EXPECT_THAT(first.per_link[0].missing, HasSubstr("one rank has no link"));
  EXPECT_THAT(render_text(*of), Not(HasSubstr("one rank has no link")));
  EXPECT_FALSE(first.per_watt[2].value);
  EXPECT_NE(first.per_watt[2].missing, "");
}

TEST(Compare, DatasheetsAreUsedWhereAllSidesHaveThem) {
  const auto on = [](Runs runs, const std::string& gpu) {
    runs = changed(runs, make_bf16);
    for (results::RunData& run : runs) {
      run.device = "cuda";
      for (auto& facts : run.rank_facts) facts.text["gpu_name"] = gpu;
      run.calibration = {.ceilings = {{.dtype = "bf16", .cache = "cold", .rate = 700e12}}};
    }
    return runs;
  };
  const Runs a = on(side("a", around(1)), "NVIDIA H200");
  const Compared both{{a, on(side_b(), "NVIDIA H100 80GB HBM3")}};
  const auto& sides = both->curves[0].sides;
  EXPECT_THAT(sides[0]->of_peak[1].against, HasSubstr("datasheet peak of H200"));
  EXPECT_NEAR(*sides[0]->of_peak[1].value, 1.2e9 / 2 / 0.050 / 989e12, 1e-7);
  EXPECT_NEAR(*sides[1]->per_link[1].value, 1024 / 0.050 / 450e9, 1e-9);
  const Compared one{{a, on(side_b(), "Some other GPU")}};
  EXPECT_THAT(one->curves[0].sides[0]->of_peak[1].against, HasSubstr("best multiplication"));
}

/// A machine, another one with a slower network and MPI, and one launch of the first, later. One
/// point is only on the first.
std::vector<std::vector<results::RunData>> three_sides() {
  std::vector<std::vector<results::RunData>> sides{traced_a(), traced_b(),
                                                   traced_side("c", 0.0505, 0.006, 0.002)};
  sides[2].resize(1);
  for (results::RunData& run : sides[1]) {
    run.mpi_library = "MPICH 4.2";
    for (auto& facts : run.rank_facts) facts.text["cpu_model"] = "Intel Xeon 8480";
  }
  for (results::RunData& run : sides[0]) {
    run.ranks = 4;
    add(run, {.dp = 4}, 0.04);
  }
  return sides;
}

TEST(RenderCompare, ClaimsWhatTheGoldenOnesDoAndTablesFitOn120Columns) {
  const Compared of{three_sides(), {.gate = 0.05}};
  golden::expect_claims(render_markdown(*of), "compare.md");
  const std::string text = render_text(*of);
  golden::expect_claims(text, "compare.txt");
  std::string tables;
  for (const std::string& line : lines_of(text)) {
    const bool sentence = line.starts_with("  why") || line.starts_with("  WARNING");
    if (!sentence && !line.starts_with("  unknown")) tables += line + "\n";
  }
  golden::expect_fits(tables, 120);
  const std::string alike = render_text(*Compared{against_a(side_b())});
  EXPECT_THAT(alike, testing::ContainsRegex("began +files\n")) << "a column of one machine";
}

/// The JSON of two sides is looked at by tests/cli/compare_test.py.
TEST(RenderCompare, JsonHasWhatIsPromised) {
  const json of = json::parse(render_json(*Compared{three_sides(), {.gate = 0.05}}));
  expect_holds(of, {{"gate", {{"verdict", "failed"}, {"regressions", 1}}}});
  EXPECT_EQ(of["only"][0]["side"], "A");
  EXPECT_EQ(of["warnings"].size(), 2U);
  const json& side = of["sides"].at(1);
  expect_holds(side["launches"][2], {{"file", "b3.h5"}, {"ranks", 2}});
  EXPECT_THAT(side["machines"].at(0).get<std::string>(), HasSubstr("Intel Xeon 8480"));
  const json& two = of["curves"][0]["sides"][1]["points"].at(1);
  expect_holds(two, {{"efficiency", {{"value", 0.08 / 0.056 / 2}}},
                     {"normalised", {{"peak", {{"value", nullptr}}}}}});
  EXPECT_LT(two["efficiency"]["lower"], two["efficiency"]["value"]);
  EXPECT_TRUE(two["normalised"]["peak"]["missing"].is_string());
  expect_holds(of["differences"].at(1),
               {{"against", "A"},
                {"efficiency", {{"points", 8000 / 112.0 - 80}}},
                {"said", {{"efficiency", of["differences"][1]["sentence"]}}}});
  EXPECT_TRUE(of["differences"][0]["said"]["efficiency"].is_null()) << "the baseline";
  expect_holds(of["overall"].at(0), {{"points", 2}, {"cause", "dp transfer"}});
}

TEST(RenderCompare, EveryFormatMarksWhatWasComparedAnywayAndHasTheLabels) {
  const Compared of{against_a(changed(side_b(), make_bf16)), {.gate = 0.05, .anyway = true}};
  EXPECT_THAT(render_text(*of), HasSubstr("[UNLIKE dtype]"));
  EXPECT_THAT(render_markdown(*of), HasSubstr("UNLIKE dtype"));
  EXPECT_THAT(render_csv(*of), HasSubstr(",dtype,"));
  EXPECT_THAT(render_junit(*of), HasSubstr("[UNLIKE dtype]"));
  const json document = json::parse(render_json(*of));
  EXPECT_EQ(document["curves"][0]["sides"][1]["points"][2]["marks"][0], "dtype");
  EXPECT_EQ(document["unlike"].size(), 1U);
  const Compared crowded{
      {changed(side("a", around(1)), make_oversubscribed), changed(side_b(), make_oversubscribed)}};
  EXPECT_FALSE(crowded->refused);
  for (const std::string& text : {render_text(*crowded), render_markdown(*crowded),
                                  render_csv(*crowded), render_json(*crowded)}) {
    EXPECT_THAT(text, HasSubstr("oversubscribed"));
  }
}

TEST(RenderCompare, RefusalsAreInTheDocuments) {
  const Compared of{against_a(changed(side_b(), make_bf16))};
  const json document = json::parse(render_json(*of));
  ASSERT_EQ(document["refused"].size(), 1U);
  expect_holds(document["refused"][0],
               {{"what", "dtype"}, {"here", {{"value", "f32"}}}, {"there", {{"value", "bf16"}}}});
  EXPECT_EQ(document["refused"][0]["there"]["files"][0], "b1.h5");
  EXPECT_TRUE(document["differences"].empty());
  EXPECT_THAT(render_junit(*of), AllOf(HasSubstr("errors=\"1\""), HasSubstr("not alike: dtype")));
  EXPECT_THAT(render_markdown(*of), HasSubstr("Not compared"));
}

TEST(RenderCompare, JunitCountsWhatItHolds) {
  const std::string lax = render_junit(*Compared{three_sides(), {.gate = 0.05}});
  for (const char* const part :
       {R"(tests="6" failures="1" errors="0" skipped="4")", R"(<failure message="regression: )",
        R"(<skipped message="one launch: )"}) {
    EXPECT_THAT(lax, HasSubstr(part));
  }
  const Compared strict{three_sides(), {.gate = 0.05, .strict = true}};
  EXPECT_THAT(render_junit(*strict), HasSubstr(R"(tests="6" failures="5" errors="0" skipped="0")"));
}

TEST(RenderCompare, JunitNamesEachCaseOnce) {
  const Compared refused{against_a(changed(side_b(), make_oversubscribed))};
  const Compared compared{{side("a", around(1)), side_b(), side("c", around(1))}};
  for (const Compared* const of : {&refused, &compared}) {
    std::vector<std::string> cases = lines_of(render_junit(**of));
    std::erase_if(cases, [](const auto& line) { return line.find("<testcase") == line.npos; });
    EXPECT_GE(cases.size(), 3U);
    for (std::string& line : cases) line.erase(0, line.find(" name=\""));
    EXPECT_EQ(std::set(cases.begin(), cases.end()).size(), cases.size());
  }
}

TEST(RenderCompare, HostileTextStaysText) {
  std::vector<std::vector<results::RunData>> sides{{hostile_run()}, {hostile_run()}};
  for (auto& side : sides) {
    results::RunData& run = side.front();
    run.id += &side == &sides.front() ? "a" : "b";
    run.points.resize(2);
    for (results::PointData& point : run.points) {
      point.labels.emplace_back("oversubscribed");
      point.options["@sum"] = &side == &sides.front() ? hostile : "\x01<&>]]>";
    }
    run.environment = {{"UCX_" + hostile, hostile + run.id}};
  }
  for (const CompareOptions& options : {CompareOptions{.gate = 0.05, .anyway = true}, {}}) {
    const Compared of{sides, options};
    for (const auto& text : {render_text(*of), render_json(*of), render_csv(*of),
                             render_markdown(*of), render_junit(*of)}) {
      golden::expect_harmless(text);
    }
    EXPECT_THAT(render_markdown(*of), Not(HasSubstr("<b>")));
    EXPECT_THAT(render_junit(*of), Not(AnyOf(HasSubstr("<b>"), HasSubstr("]]>"))));
    for (const auto& row : parse_csv(render_csv(*of))) {
      for (const std::string& cell : row) EXPECT_FALSE(cell.starts_with("=cmd"));
    }
  }
}

TEST(RenderCompare, VeryLongNamesAreShortened) {
  const std::string long_name(1 << 20, 'x');
  const auto rename = [&](results::PointData& at) { at.model = long_name; };
  const Compared of{{changed(side("a", around(1)), rename), changed(side_b(), rename)}};
  for (const auto& text : {render_text(*of), render_markdown(*of), render_junit(*of)}) {
    EXPECT_LT(text.size(), 20'000U);
    EXPECT_THAT(text, HasSubstr("xxx… "));
  }
  EXPECT_EQ(json::parse(render_json(*of))["curves"][0]["model"], long_name) << "programs get all";
}

TEST(Escape, KeepsWhatIsHarmlessAndShortensWhatIsLong) {
  for (const auto& [text, escaped] : std::vector<std::pair<std::string, std::string>>{
           {"caf\u00e9 \u00b5s \u2014 100%", "caf\u00e9 \u00b5s \u2014 100%"},
           {std::string{"a\0b", 3}, "a\\x00b"},
           {"\xc0\xaf", "\\xc0\\xaf"},                // overlong
           {"\xed\xa0\x80", "\\xed\\xa0\\x80"},       // surrogate
           {"\xe2\x82", "\\xe2\\x82"},                // cut short
           {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},  // four bytes
           {"\xef\xbf\xbf", "\\uffff"},               // no character of XML
           {std::string(render::most_shown, 'x'), std::string(render::most_shown, 'x')}}) {
    EXPECT_EQ(render::escape(text), escaped);
  }
  EXPECT_THAT(render::escape(std::string(1'000'000, 'x')), EndsWith("x… (of 1000000 bytes)"));
  EXPECT_EQ(render::escape_up_to("abcdef", 6), "abcdef");
  EXPECT_EQ(render::escape_up_to("abcdef", 3), "abc… (of 6 bytes)");
  EXPECT_EQ(render::escape_up_to("ä\x1bxyz", 2), "ä\\x1b… (of 6 bytes)");
  EXPECT_EQ(render::escape_up_to(std::string(5000, 'x'), render::whole_text).size(), 5000U);
}

}  // namespace
}  // namespace isoscale::analysis::compare
