// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/compare/compare_render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "analysis/page/asset.hpp"
#include "analysis/page/page.hpp"
#include "analysis/render/text.hpp"
#include "compare_samples.hpp"
#include "golden.hpp"
#include "reported.hpp"

namespace isoscale::analysis {
namespace {

using nlohmann::json;
using samples::anyway;
using samples::around;
using samples::changed;
using samples::Compared;
using samples::side;
using samples::traced_side;
using samples::with_gate;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

/// A machine, another one with a slower network and MPI, and one launch of the first, later. One
/// point is only on the first.
std::vector<std::vector<results::RunData>> three_sides() {
  std::vector<std::vector<results::RunData>> sides{traced_side("a", 0.050, 0.006, 0.002),
                                                   traced_side("b", 0.056, 0.011, 0.003),
                                                   traced_side("c", 0.0505, 0.006, 0.002)};
  sides[2].resize(1);
  for (results::RunData& run : sides[1]) {
    run.mpi_library = "MPICH 4.2";
    for (auto& facts : run.rank_facts) facts.text["cpu_model"] = "Intel Xeon 8480";
  }
  for (results::RunData& run : sides[0]) {
    run.ranks = 4;
    samples::add(run, {.dp = 4}, 0.04);
  }
  return sides;
}

TEST(RenderCompare, ClaimsWhatTheGoldenOnesDoAndTablesFitOn120Columns) {
  const Compared of{three_sides(), with_gate(0.05)};
  golden::expect_claims(render_markdown(*of), "compare.md");
  const std::string text = render_text(*of);
  golden::expect_claims(text, "compare.txt");
  std::istringstream lines{text};
  std::string tables;
  for (std::string line; std::getline(lines, line);) {
    const bool sentence = line.starts_with("  why") || line.starts_with("  WARNING");
    if (!sentence && !line.starts_with("  unknown")) tables += line + "\n";
  }
  golden::expect_fits(tables, 120);
}

TEST(RenderCompare, TextEndsWithTheGate) {
  const Compared of{{side("a", around(1)), side("b", around(1.2))}, with_gate(0.05)};
  const std::string text = render_text(*of);
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  EXPECT_EQ(last, "gate 5.0%: FAILED: of 3 points: 3 regressions\n");
}

TEST(RenderCompare, JsonHasWhatIsPromised) {
  const json of = json::parse(render_json(*Compared{three_sides(), with_gate(0.05)}));
  ASSERT_EQ(of["sides"].size(), 3U);
  ASSERT_EQ(of["differences"].size(), 4U);
  ASSERT_EQ(of["overall"].size(), 2U);
  expect_holds(of, {{"schema_version", "1.0"},
                    {"refused", json::array()},
                    {"gate", {{"verdict", "failed"}, {"regressions", 1}}}});
  EXPECT_EQ(of["only"][0]["side"], "A");
  EXPECT_EQ(of["warnings"].size(), 2U);
  const json& side = of["sides"][1];
  EXPECT_EQ(side["name"], "B");
  expect_holds(side["launches"][2], {{"file", "b3.h5"}, {"ranks", 2}});
  ASSERT_EQ(side["machines"].size(), 1U);
  EXPECT_THAT(side["machines"][0].get<std::string>(), HasSubstr("Intel Xeon 8480"));
  const json& curve = of["curves"][0];
  EXPECT_EQ(curve["baseline"], 1);
  const json& two = curve["sides"][1]["points"][1];
  expect_holds(two, {{"ranks", 2},
                     {"throughput", {{"unit", "tokens/s"}}},
                     {"efficiency", {{"value", 0.08 / 0.056 / 2}}},
                     {"normalised", {{"peak", {{"value", nullptr}}}}}});
  EXPECT_NEAR(two["step_time"]["median"].get<double>(), 0.056, 1e-4);
  EXPECT_NEAR(two["throughput"]["value"].get<double>(), 1024 / 0.056, 20);
  EXPECT_LT(two["efficiency"]["lower"], two["efficiency"]["value"]);
  EXPECT_EQ(two["launches"].size(), 3U);
  EXPECT_TRUE(two["normalised"]["peak"]["missing"].is_string());
  const json& at = of["differences"][1];
  expect_holds(at, {{"side", "B"},
                    {"against", "A"},
                    {"throughput", {{"ratio", 50.0 / 56}}},
                    {"efficiency", {{"points", 8000 / 112.0 - 80}}},
                    {"verdict", "regression"},
                    {"said", {{"efficiency", at["sentence"]}}}});
  double points = 0;
  for (const json& cause : at["why"]) points += cause["points"].get<double>();
  EXPECT_NEAR(points, at["efficiency"]["points"].get<double>(), 1e-9);
  EXPECT_THAT(at["sentence"].get<std::string>(), HasSubstr("points lower at 2 ranks"));
  EXPECT_TRUE(of["differences"][0]["said"]["efficiency"].is_null()) << "the baseline";
  EXPECT_EQ(of["differences"][3]["verdict"], "one launch");
  expect_holds(of["overall"][0], {{"side", "B"}, {"points", 2}, {"cause", "dp transfer"}});
  EXPECT_NEAR(of["overall"][0]["throughput"]["ratio"].get<double>(), std::sqrt(50.0 / 56), 1e-3);
  EXPECT_TRUE(of["overall"][1]["throughput"]["lower"].is_null()) << "one launch";
}

TEST(RenderCompare, EveryFormatMarksWhatWasComparedAnyway) {
  const auto to_bf16 = [](results::PointData& at) { at.dtype = "bf16"; };
  compare::CompareOptions options = anyway();
  options.gate = 0.05;
  const Compared of{{side("a", around(1)), changed(side("b", around(1)), to_bf16)}, options};
  EXPECT_THAT(render_text(*of), HasSubstr("[UNLIKE dtype]"));
  EXPECT_THAT(render_markdown(*of), HasSubstr("UNLIKE dtype"));
  EXPECT_THAT(render_csv(*of), HasSubstr(",dtype,"));
  EXPECT_THAT(compare::render_junit(*of), HasSubstr("[UNLIKE dtype]"));
  const json document = json::parse(render_json(*of));
  EXPECT_EQ(document["curves"][0]["marks"][0], "dtype");
  EXPECT_EQ(document["curves"][0]["sides"][1]["points"][2]["marks"][0], "dtype");
  EXPECT_EQ(document["differences"][0]["marks"][0], "dtype");
  EXPECT_TRUE(document["refused"].empty());
  EXPECT_EQ(document["unlike"].size(), 1U);
}

TEST(RenderCompare, EveryFormatHasTheLabels) {
  const auto crowd = [](results::PointData& at) { at.labels = {"oversubscribed"}; };
  const Compared of{{changed(side("a", around(1)), crowd), changed(side("b", around(1)), crowd)}};
  for (const std::string& text :
       {render_text(*of), render_markdown(*of), render_csv(*of), render_json(*of)}) {
    EXPECT_THAT(text, HasSubstr("oversubscribed"));
  }
}

TEST(RenderCompare, RefusalsAreInTheDocuments) {
  const auto to_bf16 = [](results::PointData& at) { at.dtype = "bf16"; };
  const Compared of{{side("a", around(1)), changed(side("b", around(1)), to_bf16)}};
  const json document = json::parse(render_json(*of));
  ASSERT_EQ(document["refused"].size(), 1U);
  EXPECT_EQ(document["refused"][0]["what"], "dtype");
  EXPECT_EQ(document["refused"][0]["here"]["value"], "f32");
  EXPECT_EQ(document["refused"][0]["there"]["files"][0], "b1.h5");
  EXPECT_TRUE(document["differences"].empty());
  EXPECT_THAT(compare::render_junit(*of), HasSubstr("errors=\"1\""));
  EXPECT_THAT(compare::render_junit(*of), HasSubstr("<error message=\"not alike: dtype"));
  EXPECT_THAT(render_markdown(*of), HasSubstr("Not compared"));
}

TEST(RenderCompare, JunitCountsWhatItHolds) {
  using Untold = compare::CompareOptions::Untold;
  const Compared lax{three_sides(), with_gate(0.05)};
  EXPECT_THAT(compare::render_junit(*lax),
              HasSubstr("tests=\"6\" failures=\"1\" errors=\"0\" skipped=\"4\""));
  EXPECT_THAT(compare::render_junit(*lax),
              HasSubstr("<failure message=\"regression: B's throughput is at least 5.0% lower"));
  EXPECT_THAT(compare::render_junit(*lax), HasSubstr("<skipped message=\"one launch: "));
  const Compared strict{three_sides(), {.gate = 0.05, .untold = Untold::fail}};
  EXPECT_THAT(compare::render_junit(*strict),
              HasSubstr("tests=\"6\" failures=\"5\" errors=\"0\" skipped=\"0\""));
}

TEST(RenderCompare, JunitNamesEachCaseOnce) {
  const auto crowd = [](results::PointData& at) { at.labels = {"oversubscribed"}; };
  const Compared refused{{side("a", around(1)), changed(side("b", around(1)), crowd)}};
  const Compared compared{{side("a", around(1)), side("b", around(1)), side("c", around(1))}};
  for (const Compared* const of : {&refused, &compared}) {
    const std::string text = compare::render_junit(**of);
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

TEST(RenderCompare, MachinesHaveAColumnWhereTheyDiffer) {
  EXPECT_THAT(compare::sides_table(*Compared{three_sides()}).columns,
              Contains(Field(&render::DocumentColumn::heading, "machine")));
  EXPECT_THAT(compare::sides_table(*Compared{{side("a", around(1)), side("b", around(1))}}).columns,
              Not(Contains(Field(&render::DocumentColumn::heading, "machine"))));
}

TEST(RenderCompare, UnknownRatesAndUnlikesAreSaidOnceOverAllCurves) {
  auto a = side("a", around(1)), b = side("b", around(1));
  for (auto* const runs : {&a, &b}) {
    for (results::RunData& run : *runs) {
      for (const int tp : {1, 2, 4}) samples::add(run, {.tp = tp}, 0.1 / tp).workload = "tp";
    }
  }
  b = changed(b, [](results::PointData& at) {
    if (at.ranks == 2) at.labels = {"injected"}, at.injections = {"slow-rank=1:1.5"};
  });
  const Compared of{{a, b}, anyway()};
  std::map<std::string, int> keys;
  for (const auto& [key, value] : compare::comparison_facts(*of)) ++keys[key];
  EXPECT_EQ(keys["unknown"], 1);
  EXPECT_EQ(keys["label"], 1);
  EXPECT_EQ(keys["UNLIKE"], 1) << "labels with what was injected, of both curves";
  for (const std::size_t curve : {0U, 1U}) {
    for (const auto& [key, value] : compare::curve_facts(*of, curve)) {
      EXPECT_THAT(key, testing::AnyOf("baseline", "why", "causes"));
    }
  }
}

TEST(RenderCompare, CsvHasARowAPointAndSide) {
  std::istringstream lines{render_csv(*Compared{three_sides()})};
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  ASSERT_EQ(rows.size(), 1U + 3 + 2 + 2);
  const auto commas = [](const std::string& row) {
    bool quoted = false;
    return std::ranges::count_if(row, [&quoted](char c) {
      quoted = quoted != (c == '"');
      return c == ',' && !quoted;
    });
  };
  for (const std::string& row : rows) EXPECT_EQ(commas(row), commas(rows[0])) << row;
}

/// Two sides whose every text is hostile.
std::vector<std::vector<results::RunData>> hostile_sides() {
  std::vector<std::vector<results::RunData>> sides{{samples::hostile_run()},
                                                   {samples::hostile_run()}};
  for (auto& side : sides) {
    results::RunData& run = side.front();
    run.id += &side == &sides.front() ? "a" : "b";
    run.points.resize(2);
    for (results::PointData& point : run.points) {
      point.labels.emplace_back("oversubscribed");
      point.options["@sum"] = &side == &sides.front() ? samples::hostile : "\x01<&>]]>";
    }
    run.environment = {{"UCX_" + samples::hostile, samples::hostile + run.id}};
  }
  return sides;
}

TEST(RenderCompare, HostileTextStaysText) {
  compare::CompareOptions options = anyway();
  options.gate = 0.05;
  for (const compare::CompareOptions& asked : {options, compare::CompareOptions{}}) {
    const Compared of{hostile_sides(), asked};
    for (const auto& text : {render_text(*of), render_json(*of), render_csv(*of),
                             render_markdown(*of), compare::render_junit(*of)}) {
      golden::expect_harmless(text);
    }
    EXPECT_THAT(render_markdown(*of), Not(HasSubstr("<b>")));
    EXPECT_THAT(compare::render_junit(*of), Not(HasSubstr("<b>")));
    EXPECT_THAT(compare::render_junit(*of), Not(HasSubstr("]]>")));
    std::istringstream lines{render_csv(*of)};
    for (std::string line; std::getline(lines, line);) {
      EXPECT_EQ(line.find(",=cmd"), std::string::npos);
      EXPECT_EQ(line.find("\"=cmd"), std::string::npos);
      EXPECT_FALSE(line.starts_with("=cmd"));
    }
  }
}

TEST(RenderCompare, VeryLongNamesAreShortened) {
  const std::string long_name(1 << 20, 'x');
  const auto rename = [&](results::PointData& at) { at.model = long_name; };
  const Compared of{{changed(side("a", around(1)), rename), changed(side("b", around(1)), rename)}};
  for (const auto& text : {render_text(*of), render_markdown(*of), compare::render_junit(*of)}) {
    EXPECT_LT(text.size(), 20'000U);
    EXPECT_THAT(text, HasSubstr("xxx… "));
  }
  EXPECT_EQ(json::parse(render_json(*of))["curves"][0]["model"], long_name) << "programs get all";
}

TEST(TextEscape, ShortensAndSaysHowLongItWas) {
  EXPECT_EQ(render::escape_up_to("abcdef", 6), "abcdef");
  EXPECT_EQ(render::escape_up_to("abcdef", 3), "abc… (of 6 bytes)");
  EXPECT_EQ(render::escape_up_to("ä\x1bxyz", 2), "ä\\x1b… (of 6 bytes)");
  EXPECT_EQ(render::escape(std::string(render::most_shown, 'x')),
            std::string(render::most_shown, 'x'));
  EXPECT_THAT(render::escape(std::string(1'000'000, 'x')),
              testing::EndsWith("x… (of 1000000 bytes)"));
  EXPECT_EQ(render::escape_up_to(std::string(5000, 'x'), render::whole_text).size(), 5000U);
  EXPECT_EQ(render::escape("\xef\xbf\xbf"), "\\uffff") << "no character of XML";
}

TEST(ComparePage, HoldsTheComparisonOfTheSides) {
  // 2 ranks: 50 ms against 60 ms, so 5/6 of the throughput.
  const Compared of{{side("a", around(1)), side("b", around(1.2))}, with_gate(0.05)};
  const auto data = page::page_data(*of);
  EXPECT_EQ(data["kind"], "compare");
  EXPECT_TRUE(data["notes"].empty());
  const auto& compared = data["compare"];
  ASSERT_EQ(compared["sides"].size(), 2U);
  EXPECT_EQ(compared["sides"][1]["launches"].size(), 3U);
  ASSERT_EQ(compared["differences"].size(), 3U);
  for (const auto& at : compared["differences"]) {
    EXPECT_NEAR(at["throughput"]["ratio"].get<double>(), 1 / 1.2, 1e-9);
    EXPECT_EQ(at["verdict"], "regression");
  }
  EXPECT_EQ(compared["gate"]["verdict"], "failed");
}

TEST(ComparePage, CutsTextsThatAreTooLongAndSaysSo) {
  auto sides = side("b", around(1));
  for (auto& run : sides) run.mpi_library = std::string(1'000'000, 'x');
  const Compared of{{side("a", around(1)), sides}};
  const auto data = page::page_data(*of);
  EXPECT_LT(data.dump().size(), 100'000U);
  EXPECT_FALSE(data["notes"].empty());
}

TEST(ComparePage, TextOfRunFilesIsNoMarkup) {
  if (!page::page_asset()) GTEST_SKIP() << "this build has no page";
  const std::string hostile = "</script><img src=x onerror=alert(1)>";
  auto sides = side("b", around(1));
  for (auto& run : sides) run.mpi_library = hostile;
  const Compared of{{side("a", around(1)), sides}};
  const std::string document = page::page_document(page::page_data(*of));
  EXPECT_THAT(document, Not(HasSubstr("<img src=x")));
  EXPECT_THAT(document, HasSubstr("\\u003c/script>\\u003cimg src=x onerror=alert(1)>"));
}

}  // namespace
}  // namespace isoscale::analysis
