// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "config/app.hpp"
#include "config/command_line.hpp"
#include "settings/option_table.hpp"
#include "tests/unit/config_support.hpp"

namespace isoscale::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing_support::fake_workloads;

std::string script(Shell shell) { return completion_script(shell, *make_app(), fake_workloads()); }

/// Returns the row of the table for a word: "VALUES|HELP".
std::string row_of(std::string_view command, std::string_view word) {
  const std::string text = script(Shell::bash), start = fmt::format("\n{}|{}|", command, word);
  const std::size_t at = text.find(start);
  EXPECT_NE(at, std::string::npos) << start;
  if (at == std::string::npos) return {};
  const std::size_t begin = at + start.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::string values_of(std::string_view command, std::string_view word) {
  const std::string row = row_of(command, word);
  return row.substr(0, row.find('|'));
}

TEST(Completion, PlaceholdersSayWhatAValueMayBe) {
  EXPECT_EQ(values_of("run", "--device"), "auto cuda host");
  EXPECT_EQ(values_of("run", "--ranks"), ",all");
  EXPECT_EQ(values_of("run", "--output"), "*.h5");
  EXPECT_EQ(values_of("run", "--fallback-dir"), "*");
  EXPECT_EQ(values_of("run", "--seed"), "");
  EXPECT_EQ(values_of("run", "--quiet"), "-");
  EXPECT_EQ(values_of("compare", "--baseline"), "node");
  EXPECT_EQ(values_of("compare", "--format"), "text json csv junit markdown");
  EXPECT_THAT(values_of("predict", "--model"), testing::MatchesRegex(".*tiny.* \\*\\.toml"));
}

TEST(Completion, HoldsEveryOptionOfTheTable) {
  for (const RunOption& option : run_options()) {
    EXPECT_THAT(row_of("run", fmt::format("--{}", option.name)),
                HasSubstr(fmt::format("|{}", option.help)));
  }
  EXPECT_THAT(row_of("run", "--help"), StartsWith("-|"));
  EXPECT_THAT(row_of("", "--version"), StartsWith("-|"));
  EXPECT_EQ(row_of("", "report"), "-|Report on run files");
}

TEST(Completion, EveryRowHasOneLine) {
  const std::string text = script(Shell::zsh);
  const std::size_t begin = text.find("<<'TABLE'\n") + 10, end = text.find("\nTABLE\n");
  const std::string table = text.substr(begin, end - begin);
  for (std::size_t at = 0, next = 0; next != std::string::npos; at = next + 1) {
    next = table.find('\n', at);
    const std::string row = table.substr(at, next - at);
    EXPECT_GE(std::ranges::count(row, '|'), 3) << row;
  }
}

TEST(Completion, NamesComeFromTheRegistry) {
  EXPECT_EQ(values_of("run", "--workload"), ",dp tp pp hybrid calibrate");
  EXPECT_THAT(values_of("run", "--suite"), HasSubstr("quick"));
  EXPECT_EQ(values_of("run", "--set"), "batch= bucket= overlap= schedule=");
  EXPECT_EQ(values_of("run", "--mesh"), ",tp= cp= ep= dp= pp=");
}

TEST(Completion, ArgumentsStandInOrder) {
  EXPECT_EQ(values_of("list", "1"), "workloads models suites options systems keys");
  EXPECT_EQ(values_of("list", "2"), "dp tp pp hybrid calibrate");
  EXPECT_EQ(values_of("report", "1"), "*.h5");
  EXPECT_EQ(values_of("run", "1"), "*.toml");
  EXPECT_THAT(values_of("predict", "1"), testing::MatchesRegex(".*h100-ndr.* \\*\\.h5 \\*\\.toml"));
  EXPECT_EQ(values_of("compare", "1"), ",*.h5");
}

TEST(Completion, TheCommandTakesAShell) {
  const auto printed = [](const std::string& shell) {
    const std::array arguments{"isoscale", "completion", shell.c_str()};
    return std::get<PrintCommand>(parse_command_line(3, arguments.data())).text;
  };
  EXPECT_THAT(printed("bash"), HasSubstr("complete -F _isoscale isoscale"));
  EXPECT_THAT(printed("zsh"), StartsWith("#compdef isoscale\n"));
  EXPECT_THAT(testing_support::usage_error([&] { (void)printed("csh"); }),
              testing::AllOf(HasSubstr("csh"), HasSubstr("zsh")));
}

}  // namespace
}  // namespace isoscale::config
