// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "config/app.hpp"
#include "parsed_commands.hpp"
#include "settings/injection.hpp"
#include "settings/layer.hpp"
#include "settings/option_table.hpp"
#include "workloads/registry.hpp"

/// Configurations that are written as TOML and read again, errors that --inject plants, launches
/// that go on with a run file, and the completion of shells.
namespace isoscale::settings {
namespace {

/// Draws configurations from everything that can be asked for, extremes included.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  RunConfig config() {
    RunConfig run;
    const int count = number(1, 5);
    for (int i = 0; i < count; ++i) run.experiments.push_back(experiment());
    run.device = pick(std::array{Device::automatic, Device::cuda, Device::host});
    if (flip()) {
      for (int ranks = number(1, 4); ranks < (1 << 24); ranks *= number(2, 9)) {
        run.ranks.push_back(ranks);
      }
    } else if (flip()) {
      run.rank_counts = RankCounts::every;
    }
    run.fill = pick(std::array{FillIdle::idle, FillIdle::replicas});
    run.blas_threads = number(1, 64);
    if (run.device != Device::cuda) {
      run.host_streams =
          pick(std::array{HostStreams::automatic, HostStreams::threads, HostStreams::folded});
    }
    if (run.device != Device::host) {
      if (flip()) run.share_gpu = ShareGpu::yes;
      if (flip()) run.gpu_bind = pick(std::array{"0", "3,1,2", "GPU-0f,0000:1b:00.0"});
      if (flip()) run.graph = Graph::on;
      if (flip()) run.nvtx = Nvtx::on;
      if (flip()) run.gemm_algorithms = text() + ".h5";
    }
    if (flip()) run.injections = parse_injections("clock=2:-5ms:20ppm");
    if (flip() && run.device != Device::cuda) {
      run.injections = parse_injections("slow-rank=0:1.5,jitter=5%,slow-link=1-2:3");
    }
    run.precision = real(0, 1);
    if (flip()) run.budget = units::Seconds{real(1, 3.6e6)};
    run.max_time = units::Seconds{flip() ? real(0, 1e-6) : real(1, 3.6e6)};
    run.trace_steps = number(0, 1000);
    run.trace_ranks = number(1, 1 << 24);
    if (flip()) run.output = text() + ".h5";
    if (flip()) run.if_exists = IfExists::overwrite;
    if (flip()) run.mode = Mode::dry_run;
    if (run.mode == Mode::dry_run && flip()) run.ranks_per_node = number(1, 4096);
    if (run.mode == Mode::dry_run && run.device != Device::host && flip())
      run.on = text() + ".toml";
    if (flip()) run.verbosity = Verbosity::quiet;
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
  for (const char* const line :
       {"run", "run --suite standard", R"(run --ranks all --output "it's \"here\".h5")",
        "run --workload dp --mesh dp=4 --precision 0.1%"}) {
    auto run = std::get<RunConfig>(parse(base::shell_words(line)));
    run.on_gpus.reset();  // settled before a run is recorded
    EXPECT_EQ(from_toml(to_toml(run), "echo"), run);
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

}  // namespace
}  // namespace isoscale::settings

namespace isoscale::config {
namespace {

/// Returns the values that the row of the table for a word has: "COMMAND|WORD|VALUES|HELP".
std::string values_of(std::string_view command, std::string_view word) {
  const std::string text = completion_script("bash", *make_app());
  const std::string start = fmt::format("\n{}|{}|", command, word);
  const std::size_t begin = text.find(start) + start.size();
  return text.substr(begin, text.find('|', begin) - begin);
}

TEST(Completion, SaysWhatAValueMayBeAndArgumentsInOrder) {
  for (const auto& [command, word, values] : std::vector<std::array<const char*, 3>>{
           {"run", "--ranks", ",all"},
           {"run", "--fallback-dir", "*"},
           {"run", "--quiet", "-"},
           {"compare", "--baseline", "node"},
           {"compare", "--format", "text json csv junit markdown"},
           {"run", "--mesh", ",tp= cp= ep= dp= pp="},
           {"compare", "1", ",*.h5"}}) {
    EXPECT_EQ(values_of(command, word), values) << command << ' ' << word;
  }
  EXPECT_THAT(values_of("predict", "--model"), testing::MatchesRegex(".*tiny.* \\*\\.toml"));
  EXPECT_THAT(values_of("predict", "1"), testing::MatchesRegex(".*h100-ndr.* \\*\\.h5 \\*\\.toml"));
}

TEST(Completion, TheCommandTakesAShell) {
  const auto printed = [](const std::string& shell) {
    return settings::text_of({"completion", shell});
  };
  EXPECT_THAT(printed("bash"), HasSubstr("complete -F _isoscale"));
  EXPECT_THAT(printed("zsh"), StartsWith("#compdef isoscale\n"));
  EXPECT_THAT(testing_support::usage_error(printed, "csh"),
              AllOf(HasSubstr("csh"), HasSubstr("zsh")));
}

}  // namespace
}  // namespace isoscale::config
