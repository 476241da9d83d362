// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Training software adds its attention kernel, the loss, and the launches of its host code to the
// times of a machine. All expectations are formulas of the model's sizes.
#include <gtest/gtest.h>

#include "analysis/predict/system_file.hpp"
#include "base/error.hpp"
#include "simulate/layout.hpp"
#include "simulate/op_time.hpp"
#include "workloads/api/toml_files.hpp"
#include "workloads/registry.hpp"

namespace isoscale::simulate {
namespace {

constexpr double peak = 1e15, bandwidth = 1e12;

/// A machine on which only attention and the loss take long: GEMMs multiply at `peak`.
Machine machine_with(Software software) {
  return {
      .name = "test",
      .source = "a test",
      .processor = Processor{.matrix = {{.type = program::DType::bf16, .peak = peak}},
                             .attention = {{.name = "kernel", .forward = 0.5, .backward = 0.25}}},
      .memory = DeviceMemory{.capacity = 1e12, .bandwidth = bandwidth},
      .network = Network{.node_ranks = 8,
                         .inside = {.bandwidth = 1e15, .reached = 1},
                         .across = {.bandwidth = 1e15, .reached = 1}},
      .software = std::move(software)};
}

struct Sizes {
  int tp = 1, microbatch = 1;
  std::string recompute = "none";
  std::string async_reduce = "off";
};
constexpr int hidden = 1024, heads = 8, kv_heads = 4, sequence = 512, layers = 2, vocabulary = 4096;

/// Returns the seconds of the ops of rank 0's step that `is_meant` selects.
template <class Select>
double seconds_of(const Machine& machine, const Sizes& sizes, const Select& is_meant) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::Request request{.model = {.name = "model",
                                       .source = "a test",
                                       .hidden = hidden,
                                       .ffn = 4 * hidden,
                                       .heads = heads,
                                       .kv_heads = kv_heads,
                                       .head_size = hidden / heads,
                                       .layers = layers,
                                       .sequence = sequence,
                                       .vocabulary = vocabulary},
                             .precision = program::Precision::bf16,
                             .options = {{"vocabulary", "on"},
                                         {"elementwise", "on"},
                                         {"recompute", sizes.recompute},
                                         {"async_reduce", sizes.async_reduce},
                                         {"batch", std::to_string(sizes.microbatch)},
                                         {"microbatch", std::to_string(sizes.microbatch)}}};
  const program::ProgramSet set =
      hybrid.build(hybrid.scale(request, {.tp = sizes.tp}, workloads::Scaling::strong));
  const Layout layout = packed(set.mesh.size(), 8);
  Places places{set.mesh, layout};
  const std::vector<units::Nanoseconds> times = op_times(machine, set.programs[0], places, 0);
  double sum = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const program::Op& op = set.programs[0].step().ops[i];
    if (is_meant(op)) sum += 1e-9 * static_cast<double>(times[i].value());
  }
  return sum;
}
bool is_any(const program::Op& /*op*/) { return true; }
bool is_forward(const program::Op& op) { return op.place.phase == program::Phase::forward; }

/// The FLOP of causal attention in all layers of one rank: half of each of `products` products.
double attention_flop(double products, const Sizes& sizes) {
  return products * layers * sizes.microbatch * sequence * sequence * hidden / sizes.tp;
}

/// The step without its attention, as far as it depends on the kernel.
double without_attention(const Sizes& sizes) {
  Machine machine = machine_with({.name = "software", .attention = "kernel"});
  machine.processor->attention = {{.name = "kernel", .forward = 1e9, .backward = 1e9}};
  return seconds_of(machine, sizes, is_any);
}

class AttentionKernelTime : public testing::TestWithParam<Sizes> {};

// With tp = 4 each rank has one key-value head: its products are then single GEMMs, not batches.
TEST_P(AttentionKernelTime, IsThatOfTwoProductsForwardAndFiveBackward) {
  const Sizes sizes = GetParam();
  const Machine machine = machine_with({.name = "software", .attention = "kernel"});
  const double forwards = sizes.recompute == "full" ? 2 : 1;
  const double expected =
      forwards * attention_flop(2, sizes) / (0.5 * peak) + attention_flop(5, sizes) / (0.25 * peak);
  EXPECT_NEAR(seconds_of(machine, sizes, is_any) - without_attention(sizes), expected,
              0.01 * expected);
}

INSTANTIATE_TEST_SUITE_P(, AttentionKernelTime,
                         testing::Values(Sizes{.tp = 1, .microbatch = 2},
                                         Sizes{.tp = 4, .microbatch = 1},
                                         Sizes{.tp = 4, .microbatch = 4},
                                         Sizes{.tp = 2, .microbatch = 1, .recompute = "selective"},
                                         Sizes{.tp = 1, .microbatch = 1, .recompute = "full"}));

TEST(SoftwareTime, ALossMovesItsBytesForEachLogit) {
  for (const int tp : {1, 2}) {
    const Sizes sizes{.tp = tp, .microbatch = 2};
    const double without = seconds_of(machine_with({.name = "software"}), sizes, is_forward);
    const double with =
        seconds_of(machine_with({.name = "software", .logit_bytes = 30}), sizes, is_forward);
    const double expected = 30.0 * 2 * sequence * vocabulary / tp / bandwidth;
    EXPECT_NEAR(with - without, expected, 0.01 * expected);
  }
}

TEST(SoftwareTime, APassTakesWhatTheHostNeedsToLaunchIt) {
  const Sizes sizes{.microbatch = 2};
  const double device = seconds_of(machine_with({.name = "software"}), sizes, is_forward);
  const auto with_host = [&](double op) {
    return seconds_of(machine_with({.name = "software", .host_op = op}), sizes, is_forward);
  };
  // Far below the time of the device the host changes nothing; far above it alone counts.
  EXPECT_DOUBLE_EQ(with_host(1e-9), device);
  const double slow = with_host(1e-3), slower = with_host(3e-3);
  EXPECT_GT(slow, 10 * device);
  EXPECT_NEAR(slower / slow, 3, 1e-6);
}

/// The host launches a sum that the device hides as it launches any other.
TEST(SoftwareTime, HiddenSumsDoNotShortenWhatTheHostNeeds) {
  const Machine machine = machine_with({.name = "software", .host_op = 1e-3});
  const auto backward = [&](const std::string& async_reduce) {
    return seconds_of(machine, {.tp = 2, .async_reduce = async_reduce}, [](const auto& op) {
      return op.stream == 0 && op.place.phase == program::Phase::backward;
    });
  };
  EXPECT_NEAR(backward("on") / backward("off"), 1, 1e-6);
}

TEST(SoftwareTime, AnAttentionKernelThatTheMachineLacksIsRefused) {
  const Machine machine = machine_with({.name = "software", .attention = "other"});
  EXPECT_THROW(static_cast<void>(seconds_of(machine, {}, is_any)), base::UsageError);
}

TEST(SoftwareFile, EachProfileLoadsAndEachSheetKnowsItsKernels) {
  for (const workloads::Preset& preset : workloads::software_presets()) {
    const Software software = analysis::predict::load_software(preset.name);
    EXPECT_GT(software.spread, 0) << preset.name;
    EXPECT_GT(software.most_ranks, 0) << preset.name;
  }
  EXPECT_THROW(static_cast<void>(analysis::predict::load_software("nemo-2052")), base::UsageError);
  for (const std::string_view sheet : {"a100-hdr", "h100-ndr", "h200-ndr", "gh200", "b200"}) {
    Machine machine = analysis::predict::load_system(sheet);
    for (const std::string_view profile : {"nemo-2025", "jax", "fsdp-eager", "megatron-2021"}) {
      machine.software = analysis::predict::load_software(profile);
      EXPECT_GT(seconds_of(machine, {}, is_any), 0) << sheet << ", " << profile;
    }
  }
}

}  // namespace
}  // namespace isoscale::simulate
