// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fstream>

#include "analysis/render/escaped_text_and_tables.hpp"
#include "matchers.hpp"

/// Golden reports are compared by what they claim: their numbers and verdicts, in order. Sentences
/// may be worded anew.
namespace isoscale::analysis::golden {

/// The words of a text that have a digit or are a verdict, without the punctuation around them.
inline std::vector<std::string> claims_of(const std::string& text) {
  constexpr std::array<std::string_view, 14> verdicts{
      "PARTIAL", "WARNING",        "WRONG",    "SLOW",      "FAILED",     "SKIPPED",    "failed",
      "skipped", "oversubscribed", "injected", "few-steps", "unverified", "regression", "passed"};
  std::vector<std::string> claims;
  std::istringstream words{text};
  for (std::string word; words >> word;) {
    constexpr std::string_view around = ".,:;()[]|*`_\"'";
    const std::size_t first = word.find_first_not_of(around);
    if (first == std::string::npos) continue;
    word = word.substr(first, word.find_last_not_of(around) - first + 1);
    const bool counts = word.find_first_of("0123456789") != std::string::npos ||
                        std::ranges::find(verdicts, word) != verdicts.end();
    if (counts) claims.push_back(word);
  }
  return claims;
}

inline std::string content(const std::string& name) {
  std::ifstream file{std::string{ISOSCALE_GOLDEN} + "/" + name};
  EXPECT_TRUE(file) << "cannot read the golden file " << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// tests/golden/README.md says how to renew the golden file `name`.
inline void expect_claims(const std::string& actual, const std::string& name) {
  const std::vector<std::string> has = claims_of(actual), wanted = claims_of(content(name));
  if (has == wanted) return;
  const std::string copy = testing::TempDir() + name;
  std::ofstream{copy} << actual;
  const auto [at, expected] = std::ranges::mismatch(has, wanted);
  ADD_FAILURE() << "claims other things than tests/golden/" << name << ", first '"
                << (at == has.end() ? "nothing" : *at) << "' instead of '"
                << (expected == wanted.end() ? "nothing" : *expected)
                << "'; what was rendered is in " << copy << ":\n"
                << actual;
}

/// Expects that no line of a report for people is wider than `columns` or ends in blanks.
inline void expect_fits(const std::string& text, std::size_t columns) {
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(render::display_width(line), columns) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << "blanks at the end of: " << line;
  }
}

/// Expects that nothing of samples::hostile is left that a terminal would act on.
inline void expect_harmless(const std::string& text) {
  for (const char* const bad : {"\x1b", "\r", "\x01", "\xc2\x9b", "\xe2\x80\xae", "\xff"}) {
    EXPECT_EQ(text.find(bad), std::string::npos) << text;
  }
}

}  // namespace isoscale::analysis::golden
