// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "analysis/advice/rules.hpp"

namespace isoscale::analysis {
namespace {

/// The cells of the table in docs/findings.md, by the rule that they begin with: "| `noise` | ...".
std::map<std::string, std::vector<std::string>> documented_rules() {
  std::ifstream file{ISOSCALE_DOCS "/findings.md"};
  std::map<std::string, std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (std::size_t begin = 2; begin < line.size();) {
      const std::size_t end = std::min(line.find(" |", begin), line.size());
      cells.push_back(line.substr(begin, end - begin));
      begin = end + 3;
    }
    const std::string name = cells[0].substr(1, cells[0].size() - 2);
    EXPECT_TRUE(rows.emplace(name, cells).second) << line;
  }
  return rows;
}

TEST(FindingsDocs, NameEveryRuleAndNoOther) {
  auto documented = documented_rules();
  for (const Rule& rule : rules()) {
    const auto row = documented.find(std::string{rule.name});
    ASSERT_NE(row, documented.end()) << rule.name;
    EXPECT_EQ(row->second.size(), 4U) << rule.name << ": rule, finds, threshold, source";
    documented.erase(row);
  }
  for (const auto& [name, cells] : documented) ADD_FAILURE() << "no such rule: " << name;
}

TEST(FindingsDocs, GiveEveryThresholdAndSource) {
  const auto documented = documented_rules();
  for (const Rule& rule : rules()) {
    const auto& cells = documented.at(std::string{rule.name});
    for (const Threshold& at : rule.thresholds) {
      const std::string text =
          to_text({.what = std::string{at.what}, .unit = at.unit, .value = at.value});
      EXPECT_NE(cells[2].find(text), std::string::npos) << rule.name << " lacks: " << text;
    }
    EXPECT_EQ(rule.thresholds.empty(), cells[2] == "—") << rule.name;
    EXPECT_EQ(cells[3], rule.source) << rule.name;
  }
}

TEST(Rules, HaveOneFunctionAndASource) {
  for (const Rule& rule : rules()) {
    EXPECT_EQ(rule.judge_point == nullptr, rule.scope == Scope::run) << rule.name;
    EXPECT_EQ(rule.judge_run != nullptr, rule.scope == Scope::run) << rule.name;
    EXPECT_FALSE(rule.source.empty()) << rule.name;
    EXPECT_EQ(rule.source.find("://"), std::string_view::npos) << rule.name;
    const auto same = std::ranges::count(rules(), rule.name, &Rule::name);
    EXPECT_EQ(same, 1) << rule.name;
    if (rule.instead_of.empty()) continue;
    EXPECT_EQ(std::ranges::count(rules(), rule.instead_of, &Rule::name), 1) << rule.name;
  }
}

TEST(Rules, RefuseAThresholdThatTheyHaveNot) {
  EXPECT_THROW((void)threshold_of(rules().front(), "no such"), std::out_of_range);
}

}  // namespace
}  // namespace isoscale::analysis
