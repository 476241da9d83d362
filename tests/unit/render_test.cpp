// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/render/render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "analysis/render/text.hpp"
#include "golden.hpp"
#include "report_samples.hpp"

namespace isoscale::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RenderText, ClaimsWhatTheGoldenOneDoes) {
  const results::RunData run = samples::two_curves();
  const RunReport report = make_report(run, "isoscale-dp-pp-node17-20250301T120007Z.h5", {});
  golden::expect_claims(render_text({{&report, 1}}), "report.txt");
}

TEST(RenderMarkdown, ClaimsWhatTheGoldenOneDoes) {
  const results::RunData run = samples::two_curves();
  const RunReport report = make_report(run, "isoscale-dp-pp-node17-20250301T120007Z.h5", {});
  golden::expect_claims(render_markdown({{&report, 1}}), "report.md");
}

TEST(RenderMarkdown, BeginsWithTheAnswer) {
  const results::RunData run = samples::two_curves();
  const RunReport report = make_report(run, "a.h5", {});
  const std::string text = render_markdown({{&report, 1}});
  const std::string first = text.substr(0, text.find('\n'));
  EXPECT_THAT(first, testing::AllOf(HasSubstr("92.5%"), HasSubstr("2 ranks"), HasSubstr("1 rank")));
}

TEST(RenderText, FitsOn120Columns) {
  results::RunData run = samples::two_curves();
  run.points[2].mesh = {.tp = 2, .dp = 2};
  const RunReport report = make_report(run, "a.h5", {});
  golden::expect_fits(render_text({{&report, 1}}), 120);
}

TEST(RenderText, SaysWhenARunIsPartialAndWhenItHasNoPoints) {
  results::RunData run = samples::run();
  run.complete = false;
  run.warnings = {"something is odd"};
  const RunReport report = make_report(run, "a.h5", {});
  const std::string text = render_text({{&report, 1}});
  EXPECT_THAT(text, HasSubstr("PARTIAL"));
  EXPECT_THAT(text, HasSubstr("WARNING  something is odd"));
  EXPECT_THAT(text, HasSubstr("No point was measured."));
}

TEST(RenderText, SaysWhyThereIsNoInterval) {
  results::RunData run = samples::run();
  run.points = {samples::measured(0, {}, 1), samples::measured(1, {.dp = 2}, 1),
                samples::measured(2, {.dp = 4}, 1)};
  run.points[1].step_times.resize(7);  // two of them warm-up
  for (int i = 0; i < 60; ++i) run.points[2].step_times.emplace_back(4, 1.0 + i);
  const RunReport report = make_report(run, "a.h5", {});
  const std::string text = render_text({{&report, 1}});
  EXPECT_THAT(text, HasSubstr("±95%     2 ranks: no interval: fewer than 6 steps count\n"));
  EXPECT_THAT(text, HasSubstr("±95%     4 ranks: no interval: the times of successive steps"));
}

TEST(RenderText, SaysWhatWasPutInOnPurpose) {
  results::RunData run = samples::run();
  run.points = {samples::measured(0, {}, 1)};
  run.points[0].labels = {"injected"};
  run.points[0].injections = {"slow-rank=0:2", "jitter=5%"};
  const RunReport report = make_report(run, "a.h5", {});
  EXPECT_THAT(render_text({{&report, 1}}), HasSubstr("injected: slow-rank=0:2, jitter=5%"));
}

TEST(RenderText, DrawsSuperlinearEfficiencyPastTheIdeal) {
  results::RunData run = samples::run();
  run.points = {samples::measured(0, {}, 1), samples::measured(1, {.dp = 2}, 0.45),
                samples::measured(2, {.dp = 4}, 0.1)};
  const RunReport report = make_report(run, "a.h5", {});
  const std::string text = render_text({{&report, 1}});
  EXPECT_THAT(text, HasSubstr("111.1%  ████████████████████│██▎\n"));
  EXPECT_THAT(text, HasSubstr("250.0%  ████████████████████│████>\n"));
}

TEST(Render, LetsNoControlCharactersThrough) {
  const results::RunData run = samples::hostile_run();
  const RunReport report = make_report(run, samples::hostile, {});
  for (const auto& render : {render_text, render_json, render_csv, render_markdown}) {
    golden::expect_harmless(render({{&report, 1}}));
  }
  EXPECT_THAT(render_text({{&report, 1}}), HasSubstr("\\x1b[2J\\x0d\\n\\x9b1m\\u202e\\xff"));
  EXPECT_THAT(render_markdown({{&report, 1}}), Not(HasSubstr("<b>")));
}

TEST(Escape, KeepsWhatIsHarmless) {
  EXPECT_EQ(escape("caf\u00e9 \u00b5s \u2014 100%"), "caf\u00e9 \u00b5s \u2014 100%");
  EXPECT_EQ(escape(std::string_view{"a\0b", 3}), "a\\x00b");
  EXPECT_EQ(escape("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(escape("\xe2\x82"), "\\xe2\\x82") << "cut short";
  EXPECT_EQ(escape("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80") << "four bytes";
}

}  // namespace
}  // namespace isoscale::analysis
