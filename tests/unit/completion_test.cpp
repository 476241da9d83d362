// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "config/app.hpp"
#include "config/command_line.hpp"
#include "config/option_table.hpp"
#include "tests/unit/config_support.hpp"

namespace isoscale::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::fake_workloads;

std::vector<CompletedCommand> commands() {
  return completed_commands(*make_app(), fake_workloads());
}

CompletedCommand command_named(std::string_view name) {
  const auto all = commands();
  const auto found = std::ranges::find(all, name, &CompletedCommand::name);
  EXPECT_NE(found, all.end()) << name;
  return found == all.end() ? CompletedCommand{} : *found;
}

CompletedOption option_of(std::string_view command, std::string_view flag) {
  const auto options = command_named(command).options;
  const auto found = std::ranges::find(options, flag, &CompletedOption::flag);
  EXPECT_NE(found, options.end()) << flag;
  return found == options.end() ? CompletedOption{} : *found;
}

TEST(Completion, PlaceholdersSayWhatAValueMayBe) {
  EXPECT_EQ(candidates_of("auto|cuda|host", {}),
            (Candidates{.words = {"auto", "cuda", "host"}, .endings = {}}));
  EXPECT_EQ(candidates_of("NAME[,NAME...]", {"dp", "tp"}),
            (Candidates{.words = {"dp", "tp"}, .endings = {}, .between_commas = true}));
  EXPECT_EQ(candidates_of("NAME|FILE.toml", {"tiny"}),
            (Candidates{.words = {"tiny"}, .endings = {".toml"}}));
  EXPECT_EQ(candidates_of("RUN.h5|SYSTEM.toml", {}),
            (Candidates{.words = {}, .endings = {".h5", ".toml"}}));
  EXPECT_EQ(candidates_of("A1.h5[,A2.h5...]", {}),
            (Candidates{.words = {}, .endings = {".h5"}, .between_commas = true}));
  EXPECT_EQ(candidates_of("N[,N...]|all", {}),
            (Candidates{.words = {"all"}, .endings = {}, .between_commas = true}));
  EXPECT_EQ(candidates_of("DIR", {}), (Candidates{.words = {}, .endings = {""}}));
  EXPECT_TRUE(candidates_of("N", {}).empty());
  EXPECT_TRUE(candidates_of("", {}).empty());
}

TEST(Completion, HoldsEveryOptionOfTheTable) {
  for (const RunOption& option : run_options()) {
    const CompletedOption found = option_of("run", "--" + std::string{option.name});
    EXPECT_EQ(found.placeholder, option.value);
    EXPECT_THAT(found.help, HasSubstr(std::string{option.help}));
  }
  EXPECT_EQ(option_of("run", "--help").placeholder, "");
  EXPECT_EQ(option_of("", "--version").placeholder, "");
}

TEST(Completion, NamesComeFromTheRegistry) {
  EXPECT_THAT(option_of("run", "--workload").value.words,
              ElementsAre("dp", "tp", "pp", "hybrid", "calibrate"));
  EXPECT_THAT(option_of("run", "--model").value.words, testing::Contains("tiny"));
  EXPECT_THAT(option_of("run", "--suite").value.words, testing::Contains("quick"));
  EXPECT_THAT(option_of("run", "--set").value.words,
              ElementsAre("batch=", "bucket=", "overlap=", "schedule="));
  EXPECT_THAT(option_of("run", "--mesh").value.words,
              ElementsAre("tp=", "cp=", "ep=", "dp=", "pp="));
  EXPECT_THAT(option_of("run", "--seed").value.words, ElementsAre());
}

TEST(Completion, CompareHasItsFormatsAndFlags) {
  EXPECT_THAT(option_of("compare", "--format").value.words,
              ElementsAre("text", "json", "csv", "junit", "markdown"));
  EXPECT_THAT(option_of("compare", "--baseline").value.words, ElementsAre("node"));
  for (const char* const flag : {"--gate", "--strict", "--anyway"}) {
    EXPECT_NE(option_of("compare", flag).help, "") << flag;
  }
}

TEST(Completion, ArgumentsStandInOrder) {
  const auto list = command_named("list");
  ASSERT_EQ(list.arguments.size(), 2U);
  EXPECT_THAT(list.arguments[0].words,
              ElementsAre("workloads", "models", "suites", "options", "systems", "keys"));
  EXPECT_THAT(list.arguments[1].words, testing::Contains("hybrid"));
  EXPECT_THAT(command_named("report").arguments.at(0).endings, ElementsAre(".h5"));
  EXPECT_THAT(command_named("run").arguments.at(0).endings, ElementsAre(".toml"));
  EXPECT_THAT(command_named("predict").arguments.at(0).endings, ElementsAre(".h5", ".toml"));
  EXPECT_THAT(command_named("predict").arguments.at(0).words, testing::Contains("h100-ndr"));
  const auto sides = command_named("compare").arguments.at(0);
  EXPECT_THAT(sides.endings, ElementsAre(".h5"));
  EXPECT_TRUE(sides.between_commas);
}

TEST(Completion, ScriptsHoldEveryOptionAndQuoteWhatTheyHold) {
  const std::vector<CompletedCommand> small{
      {.name = "play",
       .help = "Play it",
       .options = {{.flag = "--what",
                    .help = "the player's [choice]: one",
                    .placeholder = "a|b",
                    .value = {.words = {"a", "b"}, .endings = {}}},
                   {.flag = "--from",
                    .help = "",
                    .placeholder = "NAME|FILE.toml",
                    .value = {.words = {"t"}, .endings = {".toml"}}}},
       .arguments = {}}};
  const std::string bash = completion_script(Shell::bash, small);
  EXPECT_THAT(bash, HasSubstr("*' play --what')\n      words='a b'"));
  const std::string zsh = completion_script(Shell::zsh, small);
  EXPECT_THAT(zsh, HasSubstr(R"('*--what=[the player'\''s \[choice\]\: one]:a|b:compadd - a b')"));
  EXPECT_THAT(zsh, HasSubstr(R"(_alternative "words\:word\:compadd - t" "files\:file\:_files -g)"));
  const std::string fish = completion_script(Shell::fish, small);
  EXPECT_THAT(fish, HasSubstr(R"(-l what -x -a 'a b' -d 'the player'\''s [choice]: one')"));
}

TEST(Completion, TheCommandTakesAShell) {
  const auto script = [](const std::string& shell) {
    const std::array arguments{"isoscale", "completion", shell.c_str()};
    return std::get<PrintCommand>(parse_command_line(3, arguments.data())).text;
  };
  EXPECT_THAT(script("bash"), HasSubstr("complete -F _isoscale isoscale"));
  EXPECT_THAT(script("zsh"), testing::StartsWith("#compdef isoscale\n"));
  EXPECT_THAT(script("fish"), HasSubstr("complete -c isoscale"));
  EXPECT_THAT(testing_support::usage_error([&] { (void)script("csh"); }),
              testing::AllOf(HasSubstr("csh"), HasSubstr("fish")));
}

}  // namespace
}  // namespace isoscale::config
