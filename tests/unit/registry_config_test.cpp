// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "config/command_line.hpp"
#include "config_support.hpp"
#include "settings/layer.hpp"

/// Configurations of the workloads that really exist.
namespace isoscale::settings {
namespace {

using testing::AllOf;
using testing::HasSubstr;

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

TEST(Registry, RefusalsNameWhatExists) {
  EXPECT_THAT(testing_support::usage_error([] {
                (void)parse({"isoscale", "run", "--workload", "ddp"});
              }),
              AllOf(HasSubstr("unknown workload 'ddp'"), HasSubstr("did you mean 'dp'?"),
                    HasSubstr("dp, tp, pp, cp, ep, hybrid")));
  EXPECT_THAT(testing_support::usage_error([] {
                (void)parse({"isoscale", "run", "--set", "shedule=1f1b"});
              }),
              HasSubstr("did you mean 'schedule'?"));
}

TEST(Registry, NoArgumentsAtAllAreHelp) {
  EXPECT_THAT(std::get<config::PrintCommand>(parse({"isoscale"})).text,
              HasSubstr("Usage: isoscale"));
  EXPECT_THAT(std::get<config::PrintCommand>(config::parse_command_line(0, nullptr)).text,
              HasSubstr("Usage"));
}

}  // namespace
}  // namespace isoscale::settings
