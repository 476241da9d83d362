// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "analysis/advice/findings.hpp"
#include "analysis_test.hpp"

/// Hand-made runs for the tests of findings.
namespace isoscale::samples {

inline results::RunData run_of(results::PointData point) { return run({std::move(point)}); }

/// A pipeline that was measured without traces.
inline results::PointData pipeline(int stages, int microbatches, const char* schedule = "1f1b") {
  results::PointData made = measured(0, {.pp = stages}, 80e-3 / stages);
  made.options = {
      {"microbatches", std::to_string(microbatches)}, {"microbatch", "2"}, {"schedule", schedule}};
  return made;
}

using analysis::advice::findings_of;

inline std::vector<analysis::advice::Finding> findings_of(const results::RunData& run) {
  return analysis::advice::findings_of(analysis::make_report(run, "a.h5", {}));
}
inline std::vector<analysis::advice::Finding> findings_of(results::PointData point) {
  return findings_of(run_of(std::move(point)));
}

/// The finding of a rule; null where there is none. Not owned.
inline const analysis::advice::Finding* find(const std::vector<analysis::advice::Finding>& all,
                                             std::string_view rule) {
  const auto found = std::ranges::find(all, rule, &analysis::advice::Finding::rule);
  return found == all.end() ? nullptr : &*found;
}

/// The finding of a rule in a run or of a point; absent where there is none.
inline std::optional<analysis::advice::Finding> finding(auto measured, std::string_view rule) {
  const auto all = findings_of(std::move(measured));
  const analysis::advice::Finding* const found = find(all, rule);
  return found == nullptr ? std::nullopt : std::optional{*found};
}

/// The value of a finding's evidence; -1 without it.
inline double evidence(const analysis::advice::Finding& finding, std::string_view what) {
  const auto found = std::ranges::find(finding.evidence, what, &analysis::advice::Evidence::what);
  return found == finding.evidence.end() ? -1 : found->value;
}

/// A test states here what it expects of a finding; fields that it leaves out may be anything.
struct Said {
  using Share = testing::Matcher<std::optional<double>>;
  Share severity = testing::_, size = testing::_;
  testing::Matcher<std::string> sentence = testing::_, next_step = testing::_;
  std::vector<std::pair<std::string_view, testing::Matcher<double>>> evidence = {};
};

/// Expects one finding of the rule in the run or of the point, as said.
inline void expect_finding(const auto& measured, std::string_view rule, const Said& said) {
  SCOPED_TRACE(rule);
  const auto found = finding(measured, rule);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->severity, said.severity);
  EXPECT_THAT(found->size, said.size);
  EXPECT_THAT(found->sentence, said.sentence);
  EXPECT_THAT(found->next_step, said.next_step);
  for (const auto& [what, value] : said.evidence) EXPECT_THAT(evidence(*found, what), value);
}

/// A share within `tolerance` of `value`.
inline Said::Share about(double value, double tolerance = 1e-12) {
  return testing::Optional(testing::DoubleNear(value, tolerance));
}

}  // namespace isoscale::samples
