// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "preflight/check.hpp"
#include "preflight_machines.hpp"

namespace isoscale::preflight {
namespace {

/// The lines of tables in docs/preflight.md, by the name that they begin with: "| `ecc` | ...".
std::map<std::string, std::string> documented_checks() {
  std::ifstream file{ISOSCALE_DOCS "/preflight.md"};
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(file, line);) {
    const std::string begin = "| `";
    if (!line.starts_with(begin)) continue;
    const std::size_t end = line.find('`', begin.size());
    EXPECT_TRUE(lines.emplace(line.substr(begin.size(), end - begin.size()), line).second) << line;
  }
  return lines;
}

TEST(PreflightDocs, NameEveryCheckAndNoOther) {
  std::map<std::string, std::string> documented = documented_checks();
  for (const Check& check : all_checks()) {
    const auto line = documented.find(std::string{check.name});
    ASSERT_NE(line, documented.end()) << check.name;
    // Name, what it looks at, source, verdicts, fix.
    EXPECT_EQ(std::ranges::count(line->second, '|'), 6) << line->second;
    documented.erase(line);
  }
  for (const auto& [name, line] : documented) ADD_FAILURE() << "no such check: " << line;
}

/// A check that stops the job with every fault is documented as one that stops.
TEST(PreflightDocs, SayWhichChecksStop) {
  const std::map<std::string, std::string> documented = documented_checks();
  for (const CheckResult& result : check_job(broken_job(), {})) {
    if (result.verdict < Verdict::warning) continue;
    EXPECT_NE(documented.at(result.name).find(name(result.verdict)), std::string::npos)
        << to_sentence(result);
  }
}

}  // namespace
}  // namespace isoscale::preflight
