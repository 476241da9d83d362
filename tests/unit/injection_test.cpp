// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// What --inject means, and what of it is refused.
#include "settings/injection.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/command_line.hpp"
#include "config_support.hpp"
#include "settings/layer.hpp"
#include "settings/run_config.hpp"

namespace isoscale::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::fake_workloads;
using testing_support::usage_error;

RunConfig parse_run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"isoscale", "run", "--workload", "dp"});
  return std::get<RunConfig>(config::parse_arguments(arguments, fake_workloads()));
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
  EXPECT_THAT(refusal("slow-rnk=3:2"), HasSubstr("did you mean 'slow-rank'"));
  EXPECT_THAT(refusal("slow-rank"), HasSubstr("KIND=VALUE"));
  EXPECT_THAT(refusal("slow-rank="), HasSubstr("KIND=VALUE"));
  EXPECT_THAT(refusal("slow-rank=3"), HasSubstr("RANK:FACTOR"));
  EXPECT_THAT(refusal("slow-rank=x:2"), HasSubstr("'x' is not a whole number"));
  EXPECT_THAT(refusal("slow-rank=-1:2"), HasSubstr("is not a whole number"));
  for (const char* const factor : {"1", "0.5", "-2", "nan", "inf", "2x", "", "1e9"}) {
    EXPECT_THAT(refusal(fmt::format("slow-rank=3:{}", factor)),
                HasSubstr("is not a factor above 1"))
        << factor;
  }
  EXPECT_THAT(refusal("slow-link=3:2"), HasSubstr("RANK-RANK:FACTOR"));
  EXPECT_THAT(refusal("slow-link=3-3:2"), HasSubstr("a link has two ends"));
  EXPECT_THAT(refusal("jitter=0%"), HasSubstr("is not a share above 0%"));
  EXPECT_THAT(refusal("jitter=101%"), HasSubstr("is not a share above 0%"));
  EXPECT_THAT(refusal("stuck=1:sleep"), HasSubstr("is not RANK:spin or RANK:throw"));
  EXPECT_THAT(refusal("stuck=spin"), HasSubstr("is not RANK:spin or RANK:throw"));
  EXPECT_THAT(refusal("clock=2"), HasSubstr("RANK:OFFSET"));
  EXPECT_THAT(refusal("clock=2:2h"), HasSubstr("more than an hour"));
  EXPECT_THAT(refusal("clock=2:5ms:20"), HasSubstr("20ppm"));
  EXPECT_THAT(refusal("clock=2:5ms:501ppm"), HasSubstr("500 ppm"));
  EXPECT_THROW((void)parse_injections("clock=2:5 parsecs"), std::invalid_argument);
  EXPECT_THAT(refusal("delay=0 GFLOP/s"), HasSubstr("rate above 0"));
  EXPECT_THROW((void)parse_injections("delay=20"), std::invalid_argument);
  EXPECT_THROW((void)parse_injections("delay=20GB/s"), std::invalid_argument);
  EXPECT_THAT(refusal("delay=1GFLOP/s,delay=2GFLOP/s"), HasSubstr("give each once"));
  EXPECT_THAT(refusal("slow-rank=3:2,slow-rank=3:3"), HasSubstr("give each once"));
  EXPECT_THAT(refusal("slow-link=1-2:2,slow-link=2-1:3"), HasSubstr("give each once"));
  EXPECT_THAT(refusal("jitter=5%,"), HasSubstr("KIND=VALUE"));
}

TEST(Injection, OptionMayBeGivenAgainAndHoldCommas) {
  const RunConfig run =
      parse_run({"--inject", "slow-rank=3:2", "--inject=jitter=5%,slow-link=0-1:2"});
  std::vector<std::string> texts;
  for (const Injection& injection : run.injections) texts.push_back(injection.text);
  EXPECT_THAT(texts, ElementsAre("slow-rank=3:2", "jitter=5%", "slow-link=0-1:2"));
  EXPECT_EQ(slowing_injections(run.injections), "slow-rank=3:2, jitter=5%, slow-link=0-1:2");
}

TEST(Injection, TwiceTheSameOverTwoOptionsIsRefusedToo) {
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

}  // namespace
}  // namespace isoscale::settings
