// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "settings/layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "config/command_line.hpp"
#include "config_support.hpp"
#include "settings/run_config.hpp"

namespace isoscale::settings {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::fake_workloads;
using testing_support::usage_error;

RunConfig run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"isoscale", "run"});
  return std::get<RunConfig>(config::parse_arguments(arguments, fake_workloads()));
}

TEST(Budget, IsATimeOnTheCommandLineAndInAFile) {
  EXPECT_FALSE(run({}).budget.has_value());
  EXPECT_EQ(run({"--budget", "25m"}).budget, units::Seconds{1500});
  RunConfig config = from_toml("budget = \"1.5h\"", "e.toml", fake_workloads());
  config.on_gpus.reset();  // settled before a run is recorded
  EXPECT_EQ(config.budget, units::Seconds{5400});
  EXPECT_EQ(from_toml(to_toml(config), "echo", fake_workloads()), config);
  EXPECT_THAT(usage_error([] { run({"--budget", "0s"}); }), HasSubstr("--budget"));
}

TEST(Resumption, HasNothingOfItsOwnButTheLaunch) {
  const RunConfig asked = run(
      {"--resume", "a.h5", "--retry", "hung", "--budget", "5m", "--allow", "clocks", "--quiet"});
  EXPECT_EQ(asked.retry, Retry::hung);
  EXPECT_EQ(asked.resume, "a.h5");
  EXPECT_TRUE(asked.experiments.empty());
  EXPECT_EQ(asked.budget, units::Seconds{300});
  EXPECT_EQ(asked.verbosity, Verbosity::quiet);
  EXPECT_THAT(asked.allowed, testing::ElementsAre("clocks"));
}

TEST(Resumption, RefusesWhatChoosesWhatIsMeasured) {
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"--workload", "dp"},
                                             {"--suite", "quick"},
                                             {"--max-time", "1s"},
                                             {"--output", "b.h5"},
                                             {"--force"},
                                             {"--dry-run"},
                                             {"--seed", "3"},
                                             {"--set", "bucket=1MiB"}}) {
    std::vector<std::string> arguments{"--resume", "a.h5"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    EXPECT_THAT(usage_error([&] { run(arguments); }),
                AllOf(HasSubstr(option[0]), HasSubstr("--resume")));
  }
}

TEST(Resumption, IsWhatRetryNeeds) {
  EXPECT_THAT(usage_error([] { run({"--retry", "hung"}); }), HasSubstr("--resume"));
}

TEST(Resumption, RefusesExperimentFiles) {
  Layer command_line;
  give(command_line.shared, *find_option("resume"), "a.h5", "--resume");
  const Layer file = read_layer("[[experiment]]\nworkload = \"dp\"\n", "e.toml");
  EXPECT_THAT(usage_error([&] { (void)assemble(file, command_line, fake_workloads()); }),
              AllOf(HasSubstr("e.toml:2"), HasSubstr("--resume")));
  EXPECT_THAT(usage_error([] { (void)from_toml("resume = \"a.h5\"", "e.toml", fake_workloads()); }),
              AllOf(HasSubstr("e.toml:1"), HasSubstr("on the command line")));
}

TEST(Resumed, HasTheFilesSettingsAndTheLaunchsLimits) {
  RunConfig first = run({"--workload", "dp", "--max-time", "7s", "--budget", "1h", "--output",
                         "old.h5", "--allow", "clocks"});
  const RunConfig asked = run({"--resume", "a.h5", "--quiet", "--retry", "hung"});
  const RunConfig config = resumed(asked, to_toml(first));
  EXPECT_EQ(config.resume, "a.h5");
  EXPECT_EQ(config.output, "a.h5");
  EXPECT_EQ(config.retry, Retry::hung);
  EXPECT_FALSE(config.budget.has_value());
  EXPECT_TRUE(config.allowed.empty());
  EXPECT_EQ(config.verbosity, Verbosity::quiet);
  EXPECT_EQ(config.max_time, units::Seconds{7});
  EXPECT_EQ(config.experiments, first.experiments);
  EXPECT_EQ(config.command_line, first.command_line);
}

/// First column of the rows of the tables of keys: "| `key` |".
std::vector<std::string> documented_keys() {
  std::ifstream file{ISOSCALE_EXPERIMENTS_DOC};
  std::stringstream text;
  text << file.rdbuf();
  std::vector<std::string> keys;
  bool is_about_keys = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("## ")) is_about_keys = line.starts_with("## Keys");
    if (!is_about_keys || !line.starts_with("| `")) continue;
    keys.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  return keys;
}

TEST(ExperimentsDocument, HasEveryKeyOnceAndNoOther) {
  std::vector<std::string> keys{"description"};  // for people: no option has it
  for (const RunOption& option : run_options()) keys.push_back(key_of(option));
  EXPECT_THAT(documented_keys(), testing::UnorderedElementsAreArray(keys));
}

}  // namespace
}  // namespace isoscale::settings
