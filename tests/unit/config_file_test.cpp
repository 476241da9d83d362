// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fstream>

#include "parsed_commands.hpp"
#include "settings/layer.hpp"
#include "settings/option_table.hpp"
#include "tests/support/scratch_directory.hpp"
#include "words.hpp"
#include "workloads/registry.hpp"

/// Experiment files, suites, and the workloads that there are.
namespace isoscale::settings {
namespace {

/// Values of other types than text, and values written in another way than on the command line;
/// RoundTrip reads every key in the form in which it is recorded.
TEST(ExperimentFile, SaysWhatTheCommandLineSays) {
  for (const auto& [toml, options] : std::vector<std::pair<const char*, const char*>>{
           {R"(
description = "for people"
workload = ["dp", "hybrid"]
set = { bucket = "1MiB", batch = 8 }
seed = 7
mesh = { dp = 2 }
ranks = [4, 1]
blas_threads = 2
precision = 0.05
max_time = 10
trace_steps = 1
trace_ranks = 2
force = true
dry_run = true
quiet = false
)",
            "--workload dp,hybrid --set bucket=1MiB --set batch=8 --seed 7 --mesh dp=2 --ranks 4,1 "
            "--blas-threads 2 --precision 0.05 --max-time 10 --trace-steps 1 --trace-ranks 2 "
            "--force --dry-run"},
           {R"(
workload = "dp,tp"
ranks = "all"
precision = "5%"
max_time = "2m"
budget = "1.5h"
seed = "18446744073709551615"
)",
            "--workload dp,tp --ranks all --precision 0.05 --max-time 120s --budget 5400s "
            "--seed 18446744073709551615"},
           {R"(
workload = "dp"
device = "cuda"
share_gpu = true
gpu_bind = [2, "0000:1b:00.0"]
graph = true
gemm_algorithms = "earlier.h5"
)",
            "--workload dp --device cuda --share-gpu --gpu-bind 2,0000:1b:00.0 --graph "
            "--gemm-algorithms earlier.h5"},
           {"gpu_bind = 2", "--gpu-bind 2"}}) {
    RunConfig typed = run_of(options);
    typed.command_line = "";
    EXPECT_EQ(read(toml), typed) << options;
  }
  EXPECT_THAT(usage_error(read, "device = \"host\"\ngraph = true"),
              AllOf(HasSubstr("--graph:"), HasSubstr("only on a GPU")));
}

TEST(ExperimentFile, AFlagThatIsFalseIsAsIfItWereNotThere) {
  int flags = 0;
  for (const RunOption& option : run_options()) {
    if (option.arity != Arity::flag) continue;
    ++flags;
    EXPECT_EQ(read(key_of(option) + " = false"), read("")) << option.name;
    EXPECT_NE(read(key_of(option) + " = true"), read("")) << option.name;
  }
  EXPECT_GE(flags, 5);
}

TEST(ExperimentFile, TablesOverrideWhatStandsAboveThemAndSpellOutModels) {
  const RunConfig run = read(R"(
dtype = "f64"
model = "gpt-125m"
set = { batch = 8, bucket = "1MiB" }

[[experiment]]
workload = "dp"
set = { batch = 16 }

[[experiment]]
workload = ["tp", "pp"]
model = { name = "mine", hidden = 8, heads = 2, layers = 1, sequence = 4 }
dtype = "f32"
)");
  ASSERT_EQ(run.experiments.size(), 3U);
  EXPECT_EQ(run.experiments[0].base.model.name, "gpt-125m");
  EXPECT_EQ(run.experiments[0].base.precision, program::Precision::f64);
  EXPECT_EQ(run.experiments[0].base.options,
            (workloads::Options{{"batch", "16"}, {"bucket", "1MiB"}}));
  EXPECT_EQ(run.experiments[1].workload, "tp");
  EXPECT_EQ(run.experiments[1].base.options,
            (workloads::Options{{"batch", "8"}, {"bucket", "1MiB"}}));
  EXPECT_EQ(run.experiments[2].workload, "pp");
  EXPECT_EQ(run.experiments[2].base.model.name, "mine");
  EXPECT_EQ(run.experiments[2].base.model.hidden, 8);
  EXPECT_EQ(run.experiments[2].base.precision, program::Precision::f32);
}

TEST(ExperimentFile, RefusalsSayWhereAndWhy) {
  testing_support::expect_words_of<std::string>(
      {{"\nmodle = \"tiny\"", {"exp.toml:2: unknown key", "did you mean 'model'?"}},
       {"max-time = \"1s\"", {"exp.toml:1: unknown key", "did you mean 'max_time'?"}},
       {"nvtx = 1", {"nvtx must be true"}},
       {"help = true", {"unknown key 'help'"}},
       {"workload = ", {"exp.toml:1: not valid"}},
       {"seed = 1\nseed = 2", {"exp.toml:2: not valid"}},
       {"\xff", {"not valid TOML"}},
       {"\nworkload = \"xp\"", {"exp.toml:2: workload: unknown"}},
       {"workload = []", {"workload is an empty"}},
       {"workload = [\"dp,tp\"]", {"holds 'dp,tp'", "one value per item"}},
       {"workload = [[\"dp\"]]", {"must be one value"}},
       {"workload = \"\"", {"workload: '' is empty"}},
       {"workload = [\"\"]", {"holds ''"}},
       {"workload = {}", {"must be one value"}},
       {"model = \"huge\"", {"exp.toml:1: model: unknown"}},
       {"model = {}", {"missing: layers"}},
       {"model = { hiden = 1 }", {"unknown key 'hiden'", "did you mean 'hidden'?"}},
       {"dtype = [\"f32\"]", {"dtype must be one"}},
       {"dtype = 1979-05-27", {"dtype must be one"}},
       {"ranks = []", {"ranks is an empty"}},
       {"ranks = 1.5", {"ranks: '1.5'"}},
       {"set = \"bucket=1\"", {"set must be a"}},
       {"\nset = { bukket = 1 }", {"exp.toml:2: bukket: unknown"}},
       {"set = { bucket = \"64M\" }", {"exp.toml:1: bucket: option", "ambiguous"}},
       {"set = { bucket = \"a\\u0000b\" }", {"'a\\x00b'", "without meaning"}},
       {"set = { bucket = [] }", {"bucket must be one"}},
       {"mesh = {}", {"mesh is an empty"}},
       {"mesh = [2]", {"mesh must be one"}},
       {"workload = \"tp\"\nmesh = \"dp=2\"", {"exp.toml:2: mesh", "does not use dp"}},
       {"force = \"true\"", {"force must be true"}},
       {"max_time = -1", {"max_time: '-1' is negative"}},
       {"suite = \"quik\"", {"exp.toml:1: suite: unknown"}},
       {"suite = \"quick\"\nworkload = \"dp\"",
        {"exp.toml:1: suite and exp.toml:2:", "both choose"}},
       {"workload = \"dp\"\n[[experiment]]\nworkload = \"tp\"", {"both choose", "[[experiment]]"}},
       {"suite = \"quick\"\n[[experiment]]\nworkload = \"tp\"", {"both choose"}},
       {"experiment = 3", {"must be [[experiment]]"}},
       {"experiment = []", {"must be [[experiment]]"}},
       {"experiment = [3]", {"must be [[experiment]]"}},
       {"\n[[experiment]]\nmodel = \"tiny\"", {"exp.toml:2: experiment names no"}},
       {"[[experiment]]\nworkload = \"dp\"\nmax_time = 3",
        {"exp.toml:3: max_time", "for the whole run"}},
       {"[[experiment]]\nworkload = \"dp\"\nscalling = 3",
        {"unknown key 'scalling'", "did you mean 'scaling'?"}},
       {"[[experiment]]\nworkload = \"calibrate\"\nset = { bucket = 1 }",
        {"exp.toml:3: bucket: unknown"}},
       {"[recorded]\nuser = \"x\"", {"user is unknown"}},
       {"[recorded]\nsuite = 3", {"suite must be a"}},
       {"recorded = 3", {"recorded must be a"}}},
      [](const auto& toml) { return usage_error(read, toml); });
}

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
    const std::string message = usage_error(read, toml);
    EXPECT_LT(message.size(), 700U);
    EXPECT_TRUE(base::is_plain(message)) << message;
  }
}

class OnDisk : public testing::Test {
 protected:
  RunConfig run(std::string_view toml, Arguments options) const {
    std::ofstream{path_} << toml;
    options.insert(options.begin(), {"run", path_.string()});
    return std::get<RunConfig>(parse(options));
  }
  testing_support::ScratchDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "experiment.toml";
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

TEST_F(OnDisk, TheCommandLineMayChooseOtherWorkloadsButNotBesideTables) {
  EXPECT_EQ(run("workload = \"dp\"", {"--workload", "tp"}).experiments[0].workload, "tp");
  EXPECT_EQ(run("workload = \"dp\"", {"--suite", "quick"}).suite, "quick");
  EXPECT_EQ(run("suite = \"quick\"", {"--workload", "tp"}).suite, "");
  for (const char* const option : {"--workload=tp", "--suite=quick"}) {
    EXPECT_THAT(usage_error([&] { (void)run("[[experiment]]\nworkload = \"dp\"", {option}); }),
                AllOf(HasSubstr("both choose what to"), HasSubstr("experiment.toml:2")));
  }
  EXPECT_THAT(usage_error([&] {
                (void)run("precision = \"5\"", {"--precision", "1%"});
              }),
              HasSubstr("experiment.toml:1: precision:"));
}

RunConfig suite(std::string_view toml) {
  RunConfig run = read(toml);
  run.on_gpus.reset();  // settled before a run is recorded
  return run;
}

TEST(Suites, HaveDescriptionsNameWhatExistsAndQuickIsQuick) {
  EXPECT_THAT(suite_names(), ElementsAre("acceptance", "quick", "standard"));
  for (const std::string_view name : suite_names()) {
    EXPECT_FALSE(load_suite(name).description.empty()) << name;
    const RunConfig run = suite("dtype = \"f64\"\nsuite = \"" + std::string{name} + "\"");
    EXPECT_EQ(run.suite, name);
    EXPECT_FALSE(run.experiments.empty()) << name;
    EXPECT_EQ(from_toml(to_toml(run), "echo"), run) << name;
    for (const Experiment& of : run.experiments) {
      EXPECT_EQ(of.base.precision, program::Precision::f64);
    }
  }
  const RunConfig quick = suite("");
  EXPECT_EQ(quick.suite, "quick");
  EXPECT_EQ(quick.experiments.size(), 5U);
  EXPECT_LE(quick.max_time.value(), 2.0);
  for (const Experiment& experiment : quick.experiments) {
    EXPECT_EQ(experiment.base.model.name, "tiny");
    EXPECT_EQ(experiment.base.precision, program::Precision::f32);
  }
}

/// First column of the rows of the tables of keys: "| `key` |".
std::vector<std::string> documented_keys() {
  std::ifstream file{ISOSCALE_EXPERIMENTS_DOC};
  std::vector<std::string> keys;
  bool is_about_keys = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_about_keys = line.starts_with("## Keys");
    if (!is_about_keys || !line.starts_with("| `")) continue;
    keys.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  return keys;
}

TEST(ExperimentsDocument, HasEveryKeyOnceAndNoOther) {
  std::vector<std::string> keys{"description"};  // for people: no option has it
  for (const RunOption& option : run_options()) keys.push_back(key_of(option));
  EXPECT_THAT(documented_keys(), UnorderedElementsAreArray(keys));
}

TEST(Registry, EveryDefaultIsAcceptedAndHooksAreThere) {
  for (const workloads::Workload& workload : workloads::registry()) {
    EXPECT_EQ(workload.is_bench(), workload.bench.build != nullptr) << workload.name;
    EXPECT_NE(workload.is_bench(), workload.work_per_step != nullptr) << workload.name;
    for (const workloads::OptionSpec& spec : workload.options) {
      EXPECT_FALSE(spec.help.empty()) << spec.key;
      for (const std::string_view value : {spec.default_value, spec.gpu_default}) {
        if (value.empty()) continue;
        EXPECT_NO_THROW(workloads::validate(spec, value)) << spec.key;
      }
    }
  }
}

}  // namespace
}  // namespace isoscale::settings
