// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Configurations that are written as TOML and read again, and the completion of shells.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "config/app.hpp"
#include "config/command_line.hpp"
#include "config_support.hpp"
#include "settings/option_table.hpp"
#include "settings/run_config.hpp"
#include "tests/unit/config_support.hpp"

namespace isoscale::settings {
namespace {

using testing_support::fake_workloads;

RunConfig read(std::string_view toml) { return from_toml(toml, "echo", fake_workloads()); }

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
    run.max_time = units::Seconds{flip() ? real(0, 1e-6) : real(1, 3.6e6)};
    run.trace_steps = number(0, 1000);
    run.trace_ranks = number(1, 1 << 24);
    if (flip()) run.output = text() + ".h5";
    if (flip()) run.if_exists = IfExists::overwrite;
    if (flip()) run.mode = Mode::dry_run;
    if (run.mode == Mode::dry_run && flip()) run.ranks_per_node = number(1, 4096);
    if (run.mode == Mode::dry_run && flip()) run.on = text() + ".toml";
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
    const auto& workload = fake_workloads()[static_cast<std::size_t>(number(0, 3))];
    Experiment result;
    result.workload = workload.name;
    result.base.model = model();
    using enum program::Precision;
    result.base.precision = pick(std::array{f64, f32, tf32, f16, bf16, fp8});
    result.base.seed = std::uniform_int_distribution<std::uint64_t>{}(random_);
    for (const auto& spec : workload.options) {
      if (flip()) result.base.options[std::string{spec.key}] = value(spec);
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
    const std::string digits = std::to_string(number(1, 1'000'000'000));
    return spec.type == workloads::OptionType::bytes && flip() ? digits + " KiB" : digits;
  }

  std::mt19937 random_;
};

TEST(RoundTrip, GivesTheSameConfigurationForAThousandOfThem) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const RunConfig config = Generator{seed}.config();
    const std::string toml = to_toml(config);
    const RunConfig back = read(toml);
    ASSERT_EQ(back, config) << "seed " << seed << "\n" << toml;
    ASSERT_EQ(to_toml(back), toml) << "seed " << seed;  // canonical: one text for one configuration
  }
}

TEST(RoundTrip, DrawsWhatItClaims) {
  // The property above is worth something only if the draws differ where it matters.
  int own_models = 0, with_mesh = 0, with_options = 0, with_ranks = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const RunConfig config = Generator{seed}.config();
    with_ranks += config.ranks.empty() ? 0 : 1;
    for (const Experiment& experiment : config.experiments) {
      const auto& model = experiment.base.model;
      own_models += model == workloads::load_model("tiny") ? 0 : 1;
      with_mesh += experiment.mesh.empty() ? 0 : 1;
      with_options += experiment.base.options.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(own_models, 50);
  EXPECT_GT(with_mesh, 50);
  EXPECT_GT(with_options, 50);
  EXPECT_GT(with_ranks, 50);
}

TEST(RoundTrip, HoldsForWhatTheCommandLineGives) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"isoscale", "run"},
        {"isoscale", "run", "--suite", "standard"},
        {"isoscale", "run", "--ranks", "all", "--output", "it's \"here\".h5"},
        {"isoscale", "run", "--workload", "dp", "--mesh", "dp=4", "--precision", "0.1%"}}) {
    auto run = std::get<RunConfig>(config::parse_arguments(arguments, workloads::registry()));
    run.on_gpus.reset();  // settled before a run is recorded
    EXPECT_EQ(from_toml(to_toml(run), "echo", workloads::registry()), run);
  }
}

TEST(RoundTrip, WritesTomlThatPeopleCanRead) {
  RunConfig run;
  run.experiments.emplace_back();
  run.experiments[0].workload = "dp";
  run.experiments[0].base.model = workloads::load_model("tiny");
  run.experiments[0].base.options["bucket"] = "1MiB";
  run.experiments[0].mesh = {{mesh::Axis::dp, 2}};
  run.ranks = {1, 2};
  run.suite = "quick";
  run.command_line = "isoscale run";
  EXPECT_EQ(to_toml(run), R"(device = "auto"
ranks = [1, 2]
fill = "idle"
blas_threads = 1
host_streams = "auto"
precision = "0.01"
max_time = "30s"
timeout = "120s"
trace_steps = 4
trace_ranks = 64

[recorded]
suite = "quick"
command_line = "isoscale run"

[[experiment]]
workload = "dp"
model = "tiny"
dtype = "f32"
set = { bucket = "1MiB" }
seed = "1"
mesh = "dp=2"
scaling = "strong"
placement = "packed"
)");
}

}  // namespace
}  // namespace isoscale::settings

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

TEST(Completion, SaysWhatAValueMayBeAndArgumentsInOrder) {
  EXPECT_EQ(values_of("run", "--device"), "auto cuda host");
  EXPECT_EQ(values_of("run", "--ranks"), ",all");
  EXPECT_EQ(values_of("run", "--output"), "*.h5");
  EXPECT_EQ(values_of("run", "--fallback-dir"), "*");
  EXPECT_EQ(values_of("run", "--seed"), "");
  EXPECT_EQ(values_of("run", "--quiet"), "-");
  EXPECT_EQ(values_of("compare", "--baseline"), "node");
  EXPECT_EQ(values_of("compare", "--format"), "text json csv junit markdown");
  EXPECT_THAT(values_of("predict", "--model"), testing::MatchesRegex(".*tiny.* \\*\\.toml"));
  EXPECT_EQ(values_of("run", "--workload"), ",dp tp pp hybrid calibrate");
  EXPECT_THAT(values_of("run", "--suite"), HasSubstr("quick"));
  EXPECT_EQ(values_of("run", "--set"), "batch= bucket= overlap= schedule=");
  EXPECT_EQ(values_of("run", "--mesh"), ",tp= cp= ep= dp= pp=");
  EXPECT_EQ(values_of("list", "1"), "workloads models suites options systems keys");
  EXPECT_EQ(values_of("list", "2"), "dp tp pp hybrid calibrate");
  EXPECT_EQ(values_of("report", "1"), "*.h5");
  EXPECT_EQ(values_of("run", "1"), "*.toml");
  EXPECT_THAT(values_of("predict", "1"), testing::MatchesRegex(".*h100-ndr.* \\*\\.h5 \\*\\.toml"));
  EXPECT_EQ(values_of("compare", "1"), ",*.h5");
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
