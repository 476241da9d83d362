// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Errors that --inject plants, launches that go on with a run file, and the workloads that really
// exist.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "config/command_line.hpp"
#include "config_support.hpp"
#include "settings/injection.hpp"
#include "settings/layer.hpp"
#include "settings/run_config.hpp"

namespace isoscale::settings {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::fake_workloads;
using testing_support::usage_error;

RunConfig run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"isoscale", "run"});
  return std::get<RunConfig>(config::parse_arguments(arguments, fake_workloads()));
}
RunConfig parse_run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--workload", "dp"});
  return run(arguments);
}

TEST(Injection, EveryKindIsRead) {
  const auto all = parse_injections(
      "slow-rank=3:1.2,slow-link=5-1:2,jitter=5%,clock=2:5ms,clock=4:-2us:-20ppm,"
      "delay=20GFLOP/s,stuck=2:spin,stuck=1:throw");
  ASSERT_EQ(all.size(), 8U);
  EXPECT_EQ(std::get<SlowRank>(all[0].what), (SlowRank{.rank = 3, .factor = 1.2}));
  EXPECT_EQ(std::get<SlowLink>(all[1].what), (SlowLink{.low = 1, .high = 5, .factor = 2}));
  EXPECT_EQ(std::get<Jitter>(all[2].what), Jitter{.mean = 0.05});
  EXPECT_EQ(std::get<ClockError>(all[3].what),
            (ClockError{.rank = 2, .offset = units::Seconds{5e-3}, .drift = 0}));
  const auto& last = std::get<ClockError>(all[4].what);
  EXPECT_EQ(last.rank, 4);
  EXPECT_DOUBLE_EQ(last.offset.value(), -2e-6);
  EXPECT_DOUBLE_EQ(last.drift, -20e-6);
  EXPECT_EQ(all[4].text, "clock=4:-2us:-20ppm");
  EXPECT_EQ(std::get<Delay>(all[5].what), Delay{.rate = units::FlopsPerSecond{2e10}});
  EXPECT_EQ(std::get<StuckRank>(all[6].what), (StuckRank{.rank = 2, .how = program::Stuck::spins}));
  EXPECT_EQ(std::get<StuckRank>(all[7].what), (StuckRank{.rank = 1, .how = program::Stuck::fails}));
}

TEST(Injection, RanksAreThoseThatItNames) {
  const auto all = parse_injections("slow-link=5-1:2,jitter=5%,clock=2:5ms");
  EXPECT_THAT(ranks_of(all[0]), ElementsAre(1, 5));
  EXPECT_THAT(ranks_of(all[1]), IsEmpty());
  EXPECT_THAT(ranks_of(all[2]), ElementsAre(2));
}

TEST(Injection, WhatMeansNothingIsRefused) {
  const auto refusal = [](std::string_view text) {
    return usage_error([&] { (void)parse_injections(text); });
  };
  for (const auto& [texts, why] : std::vector<std::pair<std::vector<const char*>, const char*>>{
           {{"slow-rnk=3:2"}, "did you mean 'slow-rank'"},
           {{"slow-rank", "slow-rank=", "jitter=5%,"}, "KIND=VALUE"},
           {{"slow-rank=3"}, "RANK:FACTOR"},
           {{"slow-rank=x:2"}, "'x' is not a whole number"},
           {{"slow-rank=-1:2"}, "is not a whole number"},
           {{"slow-rank=3:1", "slow-rank=3:0.5", "slow-rank=3:-2", "slow-rank=3:nan",
             "slow-rank=3:inf", "slow-rank=3:2x", "slow-rank=3:", "slow-rank=3:1e9"},
            "is not a factor above 1"},
           {{"slow-link=3:2"}, "RANK-RANK:FACTOR"},
           {{"slow-link=3-3:2"}, "a link has two ends"},
           {{"jitter=0%", "jitter=101%"}, "is not a share above 0%"},
           {{"stuck=1:sleep", "stuck=spin"}, "is not RANK:spin or RANK:throw"},
           {{"clock=2"}, "RANK:OFFSET"},
           {{"clock=2:2h"}, "more than an hour"},
           {{"clock=2:5ms:20"}, "20ppm"},
           {{"clock=2:5ms:501ppm"}, "500 ppm"},
           {{"delay=0 GFLOP/s"}, "rate above 0"},
           {{"delay=1GFLOP/s,delay=2GFLOP/s", "slow-rank=3:2,slow-rank=3:3",
             "slow-link=1-2:2,slow-link=2-1:3"},
            "give each once"}}) {
    for (const char* text : texts) EXPECT_THAT(refusal(text), HasSubstr(why)) << text;
  }
  for (const char* text : {"clock=2:5 parsecs", "delay=20", "delay=20GB/s"}) {
    EXPECT_THROW((void)parse_injections(text), std::invalid_argument);
  }
}

TEST(Injection, OptionMayBeGivenAgainAndHoldCommas) {
  const RunConfig run =
      parse_run({"--inject", "slow-rank=3:2", "--inject=jitter=5%,slow-link=0-1:2"});
  std::vector<std::string> texts;
  for (const Injection& injection : run.injections) texts.push_back(injection.text);
  EXPECT_THAT(texts, ElementsAre("slow-rank=3:2", "jitter=5%", "slow-link=0-1:2"));
  EXPECT_EQ(slowing_injections(run.injections), "slow-rank=3:2, jitter=5%, slow-link=0-1:2");
  const std::string why = usage_error([] {
    (void)parse_run({"--inject", "slow-rank=3:2", "--inject", "slow-rank=3:4"});
  });
  EXPECT_THAT(why, HasSubstr("--inject"));
  EXPECT_THAT(why, HasSubstr("give each once"));
}

TEST(Injection, ExperimentFileHasAListAndTheEchoKeepsIt) {
  const std::string toml =
      "inject = [\"slow-rank=3:2\", \"clock=1:5ms:20ppm\"]\nworkload = \"dp\"\n";
  const RunConfig run = from_toml(toml, "exp.toml", fake_workloads());
  ASSERT_EQ(run.injections.size(), 2U);
  EXPECT_EQ(from_toml(to_toml(run), "echo", fake_workloads()), run);
  EXPECT_THAT(to_toml(run), HasSubstr("inject = [\"slow-rank=3:2\", \"clock=1:5ms:20ppm\"]"));
}

TEST(Injection, CommandLineReplacesWhatTheFileSays) {
  const Layer file = read_layer("inject = \"jitter=5%\"\nworkload = \"dp\"\n", "exp.toml");
  Layer line;
  give(line.shared, *find_option("inject"), "slow-rank=1:2", "--inject");
  const RunConfig run = assemble(file, line, fake_workloads());
  ASSERT_EQ(run.injections.size(), 1U);
  EXPECT_EQ(run.injections[0].text, "slow-rank=1:2");
}

TEST(Injection, GpuCannotBeSlowedButItsClockCanBeWrong) {
  const std::string why = usage_error([] {
    (void)parse_run({"--device", "cuda", "--inject", "slow-rank=1:2", "--inject", "clock=1:5ms"});
  });
  EXPECT_THAT(why, HasSubstr("--inject slow-rank=1:2: only the host can be slowed down"));
  EXPECT_EQ(parse_run({"--device", "cuda", "--inject", "clock=1:5ms"}).injections.size(), 1U);
}

TEST(Nvtx, HasAMeaningOnlyOnAGpu) {
  EXPECT_EQ(parse_run({"--nvtx", "--device", "cuda"}).nvtx, Nvtx::on);
  EXPECT_EQ(parse_run({}).nvtx, Nvtx::off);
  EXPECT_THAT(usage_error([] {
                (void)parse_run({"--nvtx", "--device", "host"});
              }),
              HasSubstr("--nvtx"));
}

TEST(ReportTrace, NamesAFileThatForceMayReplace) {
  const auto report = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"isoscale", "report", "run.h5"});
    return std::get<ReportCommand>(config::parse_arguments(arguments, fake_workloads()));
  };
  EXPECT_EQ(report({"--trace", "t.json"}).trace, "t.json");
  EXPECT_EQ(report({"--trace", "t.json"}).if_exists, IfExists::refuse);
  EXPECT_EQ(report({"--trace", "t.json", "--force"}).if_exists, IfExists::overwrite);
  EXPECT_TRUE(report({}).trace.empty());
  EXPECT_THAT(usage_error([&] { (void)report({"--force"}); }), HasSubstr("--trace"));
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

TEST(Resumption, RefusesWhatChoosesWhatIsMeasuredAndExperimentFiles) {
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
  EXPECT_THAT(usage_error([] { run({"--retry", "hung"}); }), HasSubstr("--resume"));
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

config::Command parse(const std::vector<const char*>& arguments) {
  return config::parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Registry, SuitesNameWorkloadsAndOptionsThatExist) {
  for (const std::string_view suite : suite_names()) {
    const std::string name{suite};
    auto run = std::get<RunConfig>(parse({"isoscale", "run", "--suite", name.c_str()}));
    run.on_gpus.reset();  // settled before a run is recorded
    EXPECT_EQ(run.suite, name);
    EXPECT_FALSE(run.experiments.empty()) << name;
    EXPECT_EQ(from_toml(to_toml(run), "echo"), run) << name;
  }
}

TEST(Registry, OptionsOfWorkloadsAreKnown) {
  const auto run = std::get<RunConfig>(parse(
      {"isoscale", "run",          "--workload", "dp,tp,pp,hybrid",  "--set", "overlap=off",
       "--set",    "bucket=1MiB",  "--set",      "tp_output=gather", "--set", "schedule=gpipe",
       "--set",    "input=pinned", "--set",      "vocabulary=on",    "--set", "optimizer=adam",
       "--set",    "batch=8",      "--set",      "microbatch=2",     "--set", "microbatches=4"}));
  EXPECT_EQ(run.experiments.size(), 4U);
  EXPECT_EQ(run.experiments[3].base.options.at("tp_output"), "gather");
}

TEST(Registry, EveryDefaultIsAValueThatIsAccepted) {
  for (const workloads::Workload& workload : workloads::registry()) {
    for (const workloads::OptionSpec& spec : workload.options) {
      EXPECT_FALSE(spec.help.empty()) << spec.key;
      if (!spec.default_value.empty()) {
        EXPECT_NO_THROW(workloads::validate(spec, spec.default_value)) << spec.key;
      }
      if (!spec.gpu_default.empty()) {
        EXPECT_NO_THROW(workloads::validate(spec, spec.gpu_default)) << spec.key;
      }
    }
  }
}

TEST(Registry, HasHooksForRowsAndRequestsAndWorkForSteps) {
  for (const workloads::Workload& workload : workloads::registry()) {
    EXPECT_EQ(workload.is_bench(), workload.bench.build != nullptr) << workload.name;
    EXPECT_NE(workload.is_bench(), workload.work_per_step != nullptr) << workload.name;
  }
}

TEST(Registry, RefusalsNameWhatExistsAndNoArgumentsAtAllAreHelp) {
  EXPECT_THAT(testing_support::usage_error([] {
                (void)parse({"isoscale", "run", "--workload", "ddp"});
              }),
              AllOf(HasSubstr("unknown workload 'ddp'"), HasSubstr("did you mean 'dp'?"),
                    HasSubstr("dp, tp, pp, cp, ep, hybrid")));
  EXPECT_THAT(testing_support::usage_error([] {
                (void)parse({"isoscale", "run", "--set", "shedule=1f1b"});
              }),
              HasSubstr("did you mean 'schedule'?"));
  EXPECT_THAT(std::get<config::PrintCommand>(parse({"isoscale"})).text,
              HasSubstr("Usage: isoscale"));
  EXPECT_THAT(std::get<config::PrintCommand>(config::parse_command_line(0, nullptr)).text,
              HasSubstr("Usage"));
}

}  // namespace
}  // namespace isoscale::settings
