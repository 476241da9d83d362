// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/compare_render.hpp"

#include "analysis/render/text.hpp"
#include "compare_samples.hpp"
#include "golden.hpp"

namespace isoscale::analysis::compare {
namespace {

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
}

/// The JSON of two sides is looked at by tests/cli/compare_test.py.
TEST(RenderCompare, JsonHasWhatIsPromised) {
  const json of = json::parse(render_json(*Compared{three_sides(), {.gate = 0.05}}));
  expect_holds(of, {{"schema_version", "1.0"},
                    {"refused", json::array()},
                    {"gate", {{"verdict", "failed"}, {"regressions", 1}}}});
  EXPECT_EQ(of["only"][0]["side"], "A");
  EXPECT_EQ(of["warnings"].size(), 2U);
  const json& side = of["sides"].at(1);
  EXPECT_EQ(side["name"], "B");
  expect_holds(side["launches"][2], {{"file", "b3.h5"}, {"ranks", 2}});
  ASSERT_EQ(side["machines"].size(), 1U);
  EXPECT_THAT(side["machines"][0].get<std::string>(), HasSubstr("Intel Xeon 8480"));
  const json& two = of["curves"][0]["sides"][1]["points"].at(1);
  expect_holds(two, {{"ranks", 2},
                     {"throughput", {{"unit", "tokens/s"}}},
                     {"efficiency", {{"value", 0.08 / 0.056 / 2}}},
                     {"normalised", {{"peak", {{"value", nullptr}}}}}});
  EXPECT_NEAR(two["step_time"]["median"].get<double>(), 0.056, 1e-4);
  EXPECT_LT(two["efficiency"]["lower"], two["efficiency"]["value"]);
  EXPECT_EQ(two["launches"].size(), 3U);
  EXPECT_TRUE(two["normalised"]["peak"]["missing"].is_string());
  const json& at = of["differences"].at(1);
  expect_holds(at, {{"side", "B"},
                    {"against", "A"},
                    {"throughput", {{"ratio", 50.0 / 56}}},
                    {"efficiency", {{"points", 8000 / 112.0 - 80}}},
                    {"verdict", "regression"},
                    {"said", {{"efficiency", at["sentence"]}}}});
  EXPECT_TRUE(of["differences"][0]["said"]["efficiency"].is_null()) << "the baseline";
  expect_holds(of["overall"].at(0), {{"side", "B"}, {"points", 2}, {"cause", "dp transfer"}});
  EXPECT_TRUE(of["overall"].at(1)["throughput"]["lower"].is_null()) << "one launch";
}

TEST(RenderCompare, EveryFormatMarksWhatWasComparedAnywayAndHasTheLabels) {
  const Compared of{against_a(changed(side_b(), make_bf16)), {.gate = 0.05, .anyway = true}};
  EXPECT_THAT(render_text(*of), HasSubstr("[UNLIKE dtype]"));
  EXPECT_THAT(render_markdown(*of), HasSubstr("UNLIKE dtype"));
  EXPECT_THAT(render_csv(*of), HasSubstr(",dtype,"));
  EXPECT_THAT(render_junit(*of), HasSubstr("[UNLIKE dtype]"));
  const json document = json::parse(render_json(*of));
  EXPECT_EQ(document["curves"][0]["marks"][0], "dtype");
  EXPECT_EQ(document["curves"][0]["sides"][1]["points"][2]["marks"][0], "dtype");
  EXPECT_EQ(document["differences"][0]["marks"][0], "dtype");
  EXPECT_TRUE(document["refused"].empty());
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
    const std::string text = render_junit(**of);
    std::set<std::string> names;
    std::size_t cases = 0;
    for (std::size_t at = text.find(" name=\"", text.find("<testcase")); at != std::string::npos;
         at = text.find(" name=\"", at + 1)) {
      ++cases;
      names.insert(text.substr(at, text.find("\">", at) - at));
    }
    EXPECT_GE(cases, 3U);
    EXPECT_EQ(names.size(), cases);
  }
}

TEST(RenderCompare, MachinesHaveNoColumnWhereTheyAreAlike) {
  EXPECT_THAT(render_text(*Compared{against_a(side_b())}),
              testing::ContainsRegex("began +files\n"));
}

TEST(RenderCompare, UnknownRatesAndUnlikesAreSaidOnceOverAllCurves) {
  auto a = side("a", around(1)), b = side_b();
  for (auto* const runs : {&a, &b}) add_tp_curve(*runs);
  b = changed(b, [](results::PointData& at) {
    if (at.ranks == 2) at.labels = {"injected"}, at.injections = {"slow-rank=1:1.5"};
  });
  const Compared of{{a, b}, {.anyway = true}};
  std::map<std::string, int> keys;
  for (const auto& [key, value] : comparison_facts(*of)) ++keys[key];
  EXPECT_EQ(keys["unknown"], 1);
  EXPECT_EQ(keys["label"], 1);
  EXPECT_EQ(keys["UNLIKE"], 1) << "labels with what was injected, of both curves";
  for (const std::size_t curve : {0U, 1U}) {
    for (const auto& [key, value] : curve_facts(*of, curve)) {
      EXPECT_THAT(key, AnyOf("baseline", "why", "causes"));
    }
  }
}

/// Two sides whose every text is hostile.
std::vector<std::vector<results::RunData>> hostile_sides() {
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
  return sides;
}

TEST(RenderCompare, HostileTextStaysText) {
  for (const CompareOptions& options : {CompareOptions{.gate = 0.05, .anyway = true}, {}}) {
    const Compared of{hostile_sides(), options};
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
