// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "config/command_line.hpp"
#include "config_support.hpp"
#include "settings/run_config.hpp"

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
