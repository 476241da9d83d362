// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "config/arguments.hpp"
#include "config/suites.hpp"
#include "config/toml_form.hpp"
#include "config_support.hpp"

namespace isoscale::config {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::fake_workloads;
using testing_support::usage_error;

RunConfig read(std::string_view toml) { return from_toml(toml, "exp.toml", fake_workloads()); }

TEST(ExperimentFile, HasTheKeysOfTheCommandLine) {
  const RunConfig run = read(R"(
description = "for people"
workload = ["dp", "hybrid"]
model = "gpt-125m"
dtype = "f64"
set = { bucket = "1MiB", batch = 8 }
seed = 7
mesh = { dp = 2 }
scaling = "weak"
placement = "spread"
device = "host"
ranks = [4, 1]
fill = "replicas"
blas_threads = 2
precision = 0.05
max_time = 10
trace_steps = 1
trace_ranks = 2
output = "out.h5"
force = true
dry_run = true
quiet = false
)");
  ASSERT_EQ(run.experiments.size(), 2U);
  const Experiment& experiment = run.experiments[1];
  EXPECT_EQ(experiment.workload, "hybrid");
  EXPECT_EQ(experiment.base.model.name, "gpt-125m");
  EXPECT_EQ(experiment.base.precision, workloads::Precision::f64);
  EXPECT_EQ(experiment.base.options, (workloads::Options{{"batch", "8"}, {"bucket", "1MiB"}}));
  EXPECT_EQ(experiment.base.seed, 7U);
  EXPECT_EQ(experiment.mesh, (mesh::Request{{mesh::Axis::dp, 2}}));
  EXPECT_EQ(experiment.scaling, workloads::Scaling::weak);
  EXPECT_EQ(experiment.placement, mesh::Placement::spread);
  EXPECT_EQ(run.device, Device::host);
  EXPECT_THAT(run.ranks, ElementsAre(1, 4));
  EXPECT_EQ(run.fill, FillIdle::replicas);
  EXPECT_EQ(run.blas_threads, 2);
  EXPECT_EQ(run.precision, 0.05);
  EXPECT_EQ(run.max_time.value(), 10.0);
  EXPECT_EQ(run.trace_steps, 1);
  EXPECT_EQ(run.trace_ranks, 2);
  EXPECT_EQ(run.output, "out.h5");
  EXPECT_EQ(run.if_exists, IfExists::overwrite);
  EXPECT_EQ(run.mode, Mode::dry_run);
  EXPECT_EQ(run.verbosity, Verbosity::normal);
  EXPECT_EQ(run.suite, "");
}

TEST(ExperimentFile, ValuesMayBeWrittenAsOnTheCommandLine) {
  const RunConfig run = read(R"(
workload = "dp,tp"
ranks = "all"
precision = "5%"
max_time = "2m"
seed = "18446744073709551615"
)");
  EXPECT_EQ(run.experiments.size(), 2U);
  EXPECT_EQ(run.rank_counts, RankCounts::every);
  EXPECT_EQ(run.precision, 0.05);
  EXPECT_EQ(run.max_time.value(), 120.0);
  EXPECT_EQ(run.experiments[0].base.seed, 18'446'744'073'709'551'615U);
}

TEST(ExperimentFile, TablesOverrideWhatStandsAboveThem) {
  const RunConfig run = read(R"(
dtype = "f64"
model = "gpt-125m"
set = { batch = 8, bucket = "1MiB" }

[[experiment]]
workload = "dp"
set = { batch = 16 }

[[experiment]]
workload = ["tp", "pp"]
model = "tiny"
dtype = "f32"
)");
  ASSERT_EQ(run.experiments.size(), 3U);
  EXPECT_EQ(run.experiments[0].base.model.name, "gpt-125m");
  EXPECT_EQ(run.experiments[0].base.precision, workloads::Precision::f64);
  EXPECT_EQ(run.experiments[0].base.options,
            (workloads::Options{{"batch", "16"}, {"bucket", "1MiB"}}));
  EXPECT_EQ(run.experiments[1].workload, "tp");
  EXPECT_EQ(run.experiments[1].base.options, (workloads::Options{{"batch", "8"}}));
  EXPECT_EQ(run.experiments[2].workload, "pp");
  EXPECT_EQ(run.experiments[2].base.model.name, "tiny");
  EXPECT_EQ(run.experiments[2].base.precision, workloads::Precision::f32);
}

TEST(ExperimentFile, WithoutWorkloadsIsTheQuickSuite) {
  const RunConfig run = read("max_time = \"5s\"");
  EXPECT_EQ(run.suite, "quick");
  EXPECT_EQ(run.experiments.size(), 4U);
  EXPECT_EQ(run.max_time.value(), 5.0);
}

TEST(ExperimentFile, MayNameASuite) {
  const RunConfig run = read("suite = \"standard\"\ndtype = \"f32\"");
  EXPECT_EQ(run.suite, "standard");
  for (const Experiment& experiment : run.experiments) {
    EXPECT_EQ(experiment.base.precision, workloads::Precision::f32);
  }
}

TEST(ExperimentFile, MaySpellOutAModel) {
  const RunConfig run = read(R"(
[[experiment]]
workload = "dp"
[experiment.model]
name = "mine"
source = "here"
hidden = 8
ffn = 32
heads = 2
kv_heads = 2
head_size = 4
gated_mlp = false
layers = 1
sequence = 4
vocabulary = 16
tied_embedding = true
learned_positions = false
published_parameters = 0
)");
  EXPECT_EQ(run.experiments[0].base.model.name, "mine");
  EXPECT_EQ(run.experiments[0].base.model.hidden, 8);
}

class OnDisk : public testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() /
            ("isoscale-" + std::to_string(::getpid()) + "-experiment.toml");
  }
  void TearDown() override { std::filesystem::remove(path_); }
  RunConfig run(std::string_view toml, std::vector<std::string> options) const {
    std::ofstream{path_} << toml;
    options.insert(options.begin(), {"isoscale", "run", path_.string()});
    return std::get<RunConfig>(parse_arguments(options, fake_workloads()));
  }
  std::filesystem::path path_;
};

TEST_F(OnDisk, TheCommandLineHasTheLastWord) {
  const RunConfig config = run(R"(
max_time = "5s"
precision = "3%"
[[experiment]]
workload = "dp"
model = "gpt-125m"
set = { batch = 8 }
)",
                               {"--max-time", "1s", "--model", "tiny", "--set", "batch=4"});
  EXPECT_EQ(config.max_time.value(), 1.0);
  EXPECT_EQ(config.precision, 0.03);
  EXPECT_EQ(config.experiments[0].base.model.name, "tiny");
  EXPECT_EQ(config.experiments[0].base.options, (workloads::Options{{"batch", "4"}}));
  EXPECT_EQ(config.command_line,
            "isoscale run " + path_.string() + " --max-time 1s --model tiny --set batch=4");
}

TEST_F(OnDisk, TheCommandLineMayChooseOtherWorkloads) {
  EXPECT_EQ(run("workload = \"dp\"", {"--workload", "tp"}).experiments[0].workload, "tp");
  EXPECT_EQ(run("workload = \"dp\"", {"--suite", "quick"}).suite, "quick");
  EXPECT_EQ(run("suite = \"quick\"", {"--workload", "tp"}).suite, "");
}

TEST_F(OnDisk, TheCommandLineDoesNotChooseBesideTables) {
  for (const char* const option : {"--workload=tp", "--suite=quick"}) {
    EXPECT_THAT(usage_error([&] { (void)run("[[experiment]]\nworkload = \"dp\"", {option}); }),
                AllOf(HasSubstr("both choose what to measure"), HasSubstr("experiment.toml:2")));
  }
}

TEST_F(OnDisk, ABadValueIsRefusedAlsoWhereItIsOverridden) {
  EXPECT_THAT(usage_error([&] {
                (void)run("precision = \"5\"", {"--precision", "1%"});
              }),
              HasSubstr("experiment.toml:1: precision: '5' is ambiguous"));
}

TEST(Suites, Parse) {
  EXPECT_THAT(suite_names(), ElementsAre("quick", "standard"));
  for (const std::string_view name : suite_names()) {
    const Layer suite = load_suite(name);
    EXPECT_FALSE(suite.description.empty()) << name;
    EXPECT_FALSE(suite.experiments.empty()) << name;
    const RunConfig run =
        read("suite = \"" + std::string{name} + "\"");  // names real models and options
    EXPECT_EQ(run.suite, name);
  }
}

TEST(Suites, QuickIsQuick) {
  const RunConfig run = read("suite = \"quick\"");
  EXPECT_EQ(run.experiments.size(), 4U);
  EXPECT_LE(run.max_time.value(), 2.0);
  for (const Experiment& experiment : run.experiments) {
    EXPECT_EQ(experiment.base.model.name, "tiny");
    EXPECT_EQ(experiment.base.precision, workloads::Precision::f32);
  }
}

struct Refusal {
  std::string_view toml, first, second = {};
};
class RefusedFile : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedFile, SaysWhereAndWhy) {
  EXPECT_THAT(
      usage_error([] { (void)read(GetParam().toml); }),
      AllOf(HasSubstr(std::string{GetParam().first}), HasSubstr(std::string{GetParam().second})));
}

INSTANTIATE_TEST_SUITE_P(
    Config, RefusedFile,
    testing::Values(
        Refusal{"\nmodle = \"tiny\"", "exp.toml:2: unknown key 'modle'", "did you mean 'model'?"},
        Refusal{"max-time = \"1s\"", "exp.toml:1: unknown key 'max-time'",
                "did you mean 'max_time'?"},
        Refusal{"graph = true", "unknown key 'graph'"},
        Refusal{"help = true", "unknown key 'help'"},
        Refusal{"workload = ", "exp.toml:1: not valid TOML"},
        Refusal{"seed = 1\nseed = 2", "exp.toml:2: not valid TOML"},
        Refusal{"\xff", "not valid TOML"},
        Refusal{"\nworkload = \"xp\"", "exp.toml:2: workload: unknown workload 'xp'"},
        Refusal{"workload = []", "workload is an empty list"},
        Refusal{"workload = [\"dp,tp\"]", "holds 'dp,tp'", "one value per item"},
        Refusal{"workload = [[\"dp\"]]", "must be one value"},
        Refusal{"workload = \"\"", "workload: '' is empty"},
        Refusal{"workload = [\"\"]", "holds ''"}, Refusal{"workload = {}", "must be one value"},
        Refusal{"model = \"huge\"", "exp.toml:1: model: unknown model 'huge'"},
        Refusal{"model = 3", "unknown model '3'"},
        Refusal{"model = {}", "the key 'name' is missing"},
        Refusal{"model = { hiden = 1 }", "unknown key 'hiden'", "did you mean 'hidden'?"},
        Refusal{"dtype = [\"f32\"]", "dtype must be one value"},
        Refusal{"dtype = 1979-05-27", "dtype must be one value"},
        Refusal{"ranks = []", "ranks is an empty list"}, Refusal{"ranks = [0]", "ranks: '0'"},
        Refusal{"ranks = [1, 1]", "names 1 twice"}, Refusal{"ranks = 1.5", "ranks: '1.5'"},
        Refusal{"set = \"bucket=1\"", "set must be a table"},
        Refusal{"\nset = { bukket = 1 }", "exp.toml:2: bukket: 'bukket' is no option"},
        Refusal{"set = { bucket = \"64M\" }", "exp.toml:1: bucket: option bucket", "ambiguous"},
        Refusal{"set = { bucket = \"a\\u0000b\" }", "'a\\x00b'", "without meaning"},
        Refusal{"set = { bucket = [] }", "bucket must be one value"},
        Refusal{"mesh = {}", "mesh is an empty table"}, Refusal{"mesh = { dp = 0 }", "dp is '0'"},
        Refusal{"mesh = [2]", "mesh must be one value"},
        Refusal{"workload = \"tp\"\nmesh = \"dp=2\"", "exp.toml:2: mesh",
                "the workload tp does not use dp"},
        Refusal{"force = 1", "force must be true or false"},
        Refusal{"force = \"true\"", "force must be true or false"},
        Refusal{"max_time = -1", "max_time: '-1' is negative"},
        Refusal{"max_time = inf", "max_time: 'inf'"},
        Refusal{"precision = true", "precision: 'true'"},
        Refusal{"output = \"a\\nb\"", "output: 'a\\x0ab' holds a control character"},
        Refusal{"suite = \"quik\"", "exp.toml:1: suite: unknown suite 'quik'"},
        Refusal{"suite = \"quick\"\nworkload = \"dp\"",
                "exp.toml:1: suite and exp.toml:2: workload", "both choose"},
        Refusal{"workload = \"dp\"\n[[experiment]]\nworkload = \"tp\"", "both choose",
                "[[experiment]]"},
        Refusal{"suite = \"quick\"\n[[experiment]]\nworkload = \"tp\"", "both choose"},
        Refusal{"experiment = 3", "must be [[experiment]] tables"},
        Refusal{"experiment = []", "must be [[experiment]] tables"},
        Refusal{"experiment = [3]", "must be [[experiment]] tables"},
        Refusal{"\n[[experiment]]\nmodel = \"tiny\"", "exp.toml:2: experiment names no workload"},
        Refusal{"[[experiment]]\nworkload = \"dp\"\nmax_time = 3", "exp.toml:3: max_time",
                "holds for the whole run"},
        Refusal{"[[experiment]]\nworkload = \"dp\"\nscalling = 3", "unknown key 'scalling'",
                "did you mean 'scaling'?"},
        Refusal{"[[experiment]]\nworkload = \"tp\"\nset = { bucket = 1 }",
                "exp.toml:3: bucket: 'bucket' is no option of tp"},
        Refusal{"[recorded]\nuser = \"x\"", "user is unknown"},
        Refusal{"[recorded]\nsuite = 3", "suite must be a string"},
        Refusal{"recorded = 3", "recorded must be a table"}));

TEST(ExperimentFile, HostileTextIsEchoedShortAndClean) {
  const std::vector<std::string> texts{"\"" + std::string(500'000, 'k') + "\" = 1",
                                       "\"\\u001b[2J\" = 1",
                                       "model = \"" + std::string(500'000, 'x') + "\"",
                                       "ranks = [" + std::string(500'000, '1'),
                                       std::string(500'000, '['),
                                       "workload = \"\\u001b[2J\"",
                                       "set = { \"\\u001b[2J\" = 1 }",
                                       "[recorded]\n\"\\u001b[2J\" = \"\"",
                                       "[recorded]\nsuite = \"\\u001b[2J\""};
  for (const std::string& toml : texts) {
    const std::string message = usage_error([&] { (void)read(toml); });
    EXPECT_LT(message.size(), 700U);
    EXPECT_TRUE(base::is_plain(message)) << message;
  }
}

}  // namespace
}  // namespace isoscale::config
