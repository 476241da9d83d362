// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Reports show the results of preflight checks.
#include "analysis/render/machine.hpp"
#include "analysis_test.hpp"

namespace isoscale::analysis {
namespace {

using results::Verdict;

results::PreflightData sample() {
  return {.results = {{.name = "device", .what = "OpenBLAS"},
                      {.name = "xid", .verdict = Verdict::not_checked, .what = "no NVML"},
                      {.name = "ecc", .verdict = Verdict::not_checked, .what = "no NVML"},
                      {.name = "port-rate",
                       .verdict = Verdict::warning,
                       .host = "c3\x1b[31m",
                       .device = "mlx5_0 port 1",
                       .what = "runs at 200 Gbit/s",
                       .cost = "half of it",
                       .fix = "reseat"},
                      {.name = "world-size", .verdict = Verdict::stop, .allowed = true}},
          .facts = R"({"device":"host"})"};
}

TEST(Checks, ShowTheWorstFirstAndWhatWasNotLookedAtByWhy) {
  EXPECT_EQ(render::count_checks(sample()), "1 ok, 2 not checked, 1 warning, 1 stop");
  EXPECT_EQ(render::count_checks({}), "");
  const std::string text = render::render_checks_text(sample());
  EXPECT_LT(text.find("\n  stop (allowed)"), text.find("\n  warning"));
  EXPECT_LT(text.find("\n  warning"), text.find("\n  ok"));
  for (const char* const part : {"no NVML\n    xid, ecc\n", "cost: half", "fix: reseat"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  // A report has them only where something is wrong.
  const render::Facts facts = render::check_facts(sample());
  ASSERT_EQ(facts.size(), 3U);
  EXPECT_EQ(facts[0].second, render::count_checks(sample()));
  EXPECT_THAT(facts[1].second, HasSubstr("port-rate"));
  EXPECT_THAT(facts[2].second, HasSubstr("allowed"));
}

TEST(Checks, AreObjectsInJsonAndDamagedFactsAreNone) {
  const auto document = nlohmann::json::parse(render::render_checks_json(sample()));
  EXPECT_EQ(document["facts"]["device"], "host");
  EXPECT_EQ(document["results"].size(), 5U);
  EXPECT_EQ(document["results"][3]["verdict"], "warning");
  EXPECT_EQ(document["results"][0]["host"], nullptr);
  EXPECT_EQ(document["results"][4]["allowed"], true);
  const std::string deep(100'000, '[');
  for (const std::string& facts :
       {std::string{}, std::string{"{"}, deep, deep + std::string(100'000, ']')}) {
    results::PreflightData preflight = sample();
    preflight.facts = facts;
    EXPECT_EQ(nlohmann::json::parse(render::render_checks_json(preflight))["facts"], nullptr);
  }
}

}  // namespace
}  // namespace isoscale::analysis
