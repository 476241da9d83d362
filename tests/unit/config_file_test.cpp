// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fstream>

#include "parsed_commands.hpp"
#include "settings/settings_layer.hpp"
#include "tests/support/scratch_directory.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

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
precision = 0.05
max_time = 10
quiet = false
)",
            "--workload dp,hybrid --set bucket=1MiB --set batch=8 --seed 7 --mesh dp=2 --ranks 4,1 "
            "--precision 0.05 --max-time 10"},
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
           {"gpu_bind = [2, \"0000:1b:00.0\"]", "--gpu-bind 2,0000:1b:00.0"},
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
  EXPECT_THAT(mapped(run.experiments, &Experiment::workload), ElementsAre("dp", "tp", "pp"));
  const workloads::Request &first = run.experiments[0].base, &last = run.experiments[2].base;
  EXPECT_EQ(first.model.name, "gpt-125m");
  EXPECT_EQ(first.precision, program::Precision::f64);
  EXPECT_EQ(first.options, (workloads::Options{{"batch", "16"}, {"bucket", "1MiB"}}));
  EXPECT_EQ(last.options, (workloads::Options{{"batch", "8"}, {"bucket", "1MiB"}}));
  EXPECT_EQ(last.model.name, "mine");
  EXPECT_EQ(last.model.hidden, 8);
  EXPECT_EQ(last.precision, program::Precision::f32);
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

TEST(Suites, HaveDescriptionsAndNameWhatExists) {
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
  EXPECT_EQ(suite("").suite, "quick");
  EXPECT_LE(suite("").max_time.value(), 2.0);
}

/// The tables of keys have a row for each: "| `key` | ...".
TEST(ExperimentsDocument, HasEveryKeyOnceAndNoOther) {
  std::vector<std::string> keys{"description"}, documented;  // for people: no option has it
  for (const RunOption& option : run_options()) keys.push_back(key_of(option));
  std::ifstream file{ISOSCALE_EXPERIMENTS_DOC};
  bool is_about_keys = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_about_keys = line.starts_with("## Keys");
    if (!is_about_keys || !line.starts_with("| `")) continue;
    documented.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  EXPECT_THAT(documented, UnorderedElementsAreArray(keys));
}

/// Draws configurations from everything that can be asked for, extremes included.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  RunConfig config() {
    RunConfig run;
    for (int count = number(1, 5); count > 0; --count) run.experiments.push_back(experiment());
    for (int ranks = number(1, 4); ranks < (1 << 24) && flip(); ranks *= number(2, 9)) {
      run.ranks.push_back(ranks);
    }
    run.precision = real(0, 1);
    if (flip()) run.budget = units::Seconds{real(1, 3.6e6)};
    run.max_time = units::Seconds{flip() ? real(0, 1e-6) : real(1, 3.6e6)};
    run.trace_ranks = number(1, 1 << 24);
    if (flip()) run.output = text() + ".h5";
    if (flip()) run.gemm_algorithms = text() + ".h5";
    if (flip()) run.command_line = text();
    if (flip()) run.suite = text();
    return run;
  }

 private:
  bool flip() { return number(0, 1) == 1; }
  int number(int least, int most) {
    return std::uniform_int_distribution<int>{least, most}(random_);
  }
  double real(double least, double most) {
    return std::uniform_real_distribution<double>{std::nextafter(least, most), most}(random_);
  }
  template <class T, std::size_t n>
  T pick(const std::array<T, n>& from) {
    return from[static_cast<std::size_t>(number(0, static_cast<int>(n) - 1))];
  }
  std::string text() {
    constexpr std::array<std::string_view, 10> parts{
        "a", "\"", "\\", "'", " ", "#", "\u00fc", "\U0001F600", "[[x]] = ", "\"\"\""};
    std::string result = "x";
    for (int i = number(0, 12); i > 0; --i) result += pick(parts);
    return result;
  }

  workloads::Model model() {
    constexpr std::array<std::string_view, 3> presets{"tiny", "gpt-13b", "llama3-8b"};
    workloads::Model model = workloads::load_model(pick(presets));
    if (flip()) return model;
    if (flip()) model.name = "own.model_1-b";  // else it pretends to be the preset
    model.source = text();
    model.layers = number(1, 1 << 24);
    model.tied_embedding = flip();
    model.published_parameters = flip() ? 0 : real(0, 1e13);
    return model;
  }

  Experiment experiment() {
    const auto& workload = workloads::registry()[static_cast<std::size_t>(number(0, 3))];
    Experiment result;
    result.workload = workload.name;
    result.base.model = model();
    using enum program::Precision;
    result.base.precision = pick(std::array{f64, f32, tf32, f16, bf16, fp8});
    result.base.seed = std::uniform_int_distribution<std::uint64_t>{}(random_);
    for (const auto& spec : workload.options) {
      if (flip() && flip()) result.base.options[std::string{spec.key}] = value(spec);
    }
    for (const mesh::Axis axis : mesh::all_axes) {
      if (flip() && workload.axes.contains(axis)) result.mesh[axis] = number(1, 2'000'000'000);
    }
    result.scaling = pick(std::array{workloads::Scaling::strong, workloads::Scaling::weak});
    result.placement = pick(std::array{mesh::Placement::packed, mesh::Placement::spread});
    return result;
  }

  std::string value(const workloads::OptionSpec& spec) {
    if (spec.type == workloads::OptionType::choice) {
      return std::string{spec.choices[static_cast<std::size_t>(number(0, 1))]};
    }
    if (spec.type == workloads::OptionType::text) return std::string{spec.default_value};
    const int most = spec.maximum == 0 ? 1'000'000'000 : static_cast<int>(spec.maximum);
    const std::string digits = std::to_string(number(1, most));
    return spec.type == workloads::OptionType::bytes && flip() ? digits + " KiB" : digits;
  }

  std::mt19937 random_;
};

TEST(RoundTrip, GivesTheSameConfigurationForAThousandOfThem) {
  int own_models = 0, with_mesh = 0, with_options = 0, with_ranks = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const RunConfig config = Generator{seed}.config();
    const std::string toml = to_toml(config);
    const RunConfig back = read(toml);
    ASSERT_EQ(back, config) << "seed " << seed << "\n" << toml;
    ASSERT_EQ(to_toml(back), toml) << "seed " << seed;  // canonical: one text for one configuration
    with_ranks += config.ranks.empty() ? 0 : 1;
    for (const Experiment& experiment : config.experiments) {
      own_models += experiment.base.model == workloads::load_model("tiny") ? 0 : 1;
      with_mesh += experiment.mesh.empty() ? 0 : 1;
      with_options += experiment.base.options.empty() ? 0 : 1;
    }
  }
  // The property is worth something only if the draws differ where it matters.
  for (const int drawn : {own_models, with_mesh, with_options, with_ranks}) EXPECT_GT(drawn, 250);
}

TEST(RoundTrip, HoldsForWhatTheCommandLineGives) {
  for (const char* const options :
       {"--suite standard --ranks all --fill replicas --blas-threads 2 --host-streams folded "
        "--device host --trace-steps 0 --force --quiet --inject slow-rank=0:1.5,jitter=5%",
        "--device cuda --share-gpu --gpu-bind 3,GPU-0f,0000:1b:00.0 --graph --nvtx --dry-run "
        "--ranks-per-node 8 --on h100-ndr --inject clock=2:-5ms:20ppm"}) {
    RunConfig run = run_of(options);
    run.on_gpus.reset();  // settled before a run is recorded
    EXPECT_EQ(read(to_toml(run)), run);
  }
}

TEST(Injection, EveryKindIsRead) {
  const std::vector<Injection> each{
      {"slow-rank=3:1.2", SlowRank{.rank = 3, .factor = 1.2}},
      {"slow-link=5-1:2", SlowLink{.low = 1, .high = 5, .factor = 2}},
      {"jitter=5%", Jitter{.mean = 0.05}},
      {"clock=2:5ms", ClockError{.rank = 2, .offset = units::Seconds{5e-3}}},
      {"delay=20GFLOP/s", Delay{.rate = units::FlopsPerSecond{2e10}}},
      {"stuck=2:spin", StuckRank{.rank = 2, .how = program::Stuck::spins}},
      {"stuck=1:throw", StuckRank{.rank = 1, .how = program::Stuck::fails}},
      {"flip=2", FlippedBits{2}}};
  for (const Injection& one : each) EXPECT_THAT(parse_injections(one.text), ElementsAre(one));
  const auto clock = std::get<ClockError>(parse_injections("clock=4:-2us:-20ppm").at(0).what);
  EXPECT_DOUBLE_EQ(clock.offset.value(), -2e-6);
  EXPECT_DOUBLE_EQ(clock.drift, -20e-6);
  EXPECT_THAT(ranks_of(each[1]), ElementsAre(1, 5));
  EXPECT_THAT(ranks_of(each[2]), IsEmpty());
  EXPECT_THAT(ranks_of(each[3]), ElementsAre(2));
}

TEST(Injection, WhatMeansNothingIsRefused) {
  const auto refusal = [](std::string_view text) { return usage_error(parse_injections, text); };
  for (const auto& [texts, why] : std::vector<std::pair<std::vector<const char*>, const char*>>{
           {{"slow-rnk=3:2"}, "did you mean 'slow-rank'"},
           {{"slow-rank", "slow-rank=", "jitter=5%,"}, "KIND=VALUE"},
           {{"slow-rank=3"}, "RANK:FACTOR"},
           {{"slow-rank=x:2"}, "'x' is not a"},
           {{"slow-rank=-1:2"}, "is not a whole"},
           {{"slow-rank=3:1", "slow-rank=3:0.5", "slow-rank=3:-2", "slow-rank=3:nan",
             "slow-rank=3:inf", "slow-rank=3:2x", "slow-rank=3:", "slow-rank=3:1e9"},
            "not a factor above"},
           {{"slow-link=3:2"}, "RANK-RANK:FACTOR"},
           {{"slow-link=3-3:2"}, "two ends"},
           {{"jitter=0%", "jitter=101%"}, "a share above 0%"},
           {{"stuck=1:sleep", "stuck=spin"}, "RANK:spin or RANK:throw"},
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
      run_of("--workload dp --inject slow-rank=3:2 --inject=jitter=5%,slow-link=0-1:2");
  ASSERT_EQ(run.injections.size(), 3U);
  EXPECT_EQ(slowing_injections(run.injections), "slow-rank=3:2, jitter=5%, slow-link=0-1:2");
  // The kernels of a GPU cannot be slowed, but its clock can be wrong.
  EXPECT_EQ(run_of("--device cuda --inject clock=1:5ms").injections.size(), 1U);
}

TEST(Injection, ExperimentFileHasAListThatTheEchoKeepsAndTheCommandLineReplaces) {
  const RunConfig run =
      read("inject = [\"slow-rank=3:2\", \"clock=1:5ms:20ppm\"]\nworkload = \"dp\"\n");
  ASSERT_EQ(run.injections.size(), 2U);
  EXPECT_EQ(read(to_toml(run)), run);
  EXPECT_THAT(to_toml(run), HasSubstr(R"(inject = ["slow-rank=3:2", "clock=1:5ms:20ppm"])"));
  const Layer file = read_layer("inject = \"jitter=5%\"\nworkload = \"dp\"\n", "exp.toml");
  Layer line;
  give(line.shared, *find_option("inject"), "slow-rank=1:2", "--inject");
  const RunConfig replaced = assemble(file, line);
  ASSERT_EQ(replaced.injections.size(), 1U);
  EXPECT_EQ(replaced.injections[0].text, "slow-rank=1:2");
}

TEST(Resumption, HasNothingOfItsOwnButTheLaunch) {
  const RunConfig asked = run_of("--resume a.h5 --retry hung --budget 5m --allow clocks --quiet");
  EXPECT_EQ(asked.retry, Retry::hung);
  EXPECT_EQ(asked.resume, "a.h5");
  EXPECT_TRUE(asked.experiments.empty());
  EXPECT_EQ(asked.budget, units::Seconds{300});
  EXPECT_EQ(asked.verbosity, Verbosity::quiet);
  EXPECT_THAT(asked.allowed, ElementsAre("clocks"));
  const RunConfig first =
      run_of("--workload dp --max-time 7s --budget 1h --output old.h5 --allow clocks");
  const RunConfig config = resumed(run_of("--resume a.h5 --quiet --retry hung"), to_toml(first));
  RunConfig wanted = first;
  wanted.resume = wanted.output = "a.h5";
  wanted.retry = Retry::hung;
  wanted.budget.reset();
  wanted.allowed.clear();
  wanted.verbosity = Verbosity::quiet;
  EXPECT_EQ(config, wanted);
  EXPECT_EQ(config.max_time, units::Seconds{7});
}

TEST(Resumption, RefusesWhatChoosesWhatIsMeasuredAndExperimentFiles) {
  for (const std::string option :
       {"--workload dp", "--suite quick", "--max-time 1s", "--output b.h5", "--force", "--dry-run",
        "--seed 3", "--set bucket=1MiB"}) {
    EXPECT_THAT(refusal_of("run --resume a.h5 " + option),
                AllOf(HasSubstr(option.substr(0, option.find(' '))), HasSubstr("--resume")));
  }
  EXPECT_THAT(refusal_of("run --retry hung"), HasSubstr("--resume"));
  Layer command_line;
  give(command_line.shared, *find_option("resume"), "a.h5", "--resume");
  const Layer file = read_layer("[[experiment]]\nworkload = \"dp\"\n", "e.toml");
  EXPECT_THAT(usage_error(assemble, file, command_line),
              AllOf(HasSubstr("e.toml:2"), HasSubstr("--resume")));
  EXPECT_THAT(usage_error(read, "resume = \"a.h5\""),
              AllOf(HasSubstr("exp.toml:1"), HasSubstr("on the command line")));
}

TEST(Completion, TheCommandTakesAShell) {
  const auto printed = [](const std::string& shell) { return text_of({"completion", shell}); };
  EXPECT_THAT(printed("bash"), HasSubstr("complete -F _isoscale"));
  EXPECT_THAT(printed("zsh"), StartsWith("#compdef isoscale\n"));
  EXPECT_THAT(usage_error(printed, "csh"), AllOf(HasSubstr("csh"), HasSubstr("zsh")));
}

}  // namespace
}  // namespace isoscale::settings
