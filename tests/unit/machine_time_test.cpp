// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Times of ops from a data sheet, and what training software adds to them.
#include "analysis/predict/system_file.hpp"
#include "analysis_test.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"
#include "simulate/op_time.hpp"
#include "stack_samples.hpp"

namespace isoscale::simulate {
namespace {

using program::DType;
using program::OpKind;

/// 10 units of 1 TFLOP/s, 100 GB/s, 1 us from op to op.
Machine round_machine() {
  return {.name = "round",
          .source = "made up",
          .processor = Processor{.matrix = {{.type = DType::f32, .peak = 10e12}}, .launch = 1e-6},
          .memory = DeviceMemory{.capacity = 1e9, .bandwidth = 100e9}};
}

/// The time of a GEMM that reads A and B and writes C.
double seconds_of(const Machine& machine, const program::Gemm& gemm, DType type) {
  const double m = gemm.m, n = gemm.n, k = gemm.k;
  const auto size = static_cast<double>(program::element_size(type));
  return gemm_seconds(machine, gemm, type, (m * k + k * n + m * n) * size);
}

TEST(MachineTime, ShareIsStraightOverTheLogarithmOfSize) {
  const std::vector<ReachedShare> list{{.size = 1e3, .share = 0.2}, {.size = 1e5, .share = 0.8}};
  EXPECT_DOUBLE_EQ(reached_share(list, 1), 0.2);
  EXPECT_DOUBLE_EQ(reached_share(list, 1e4), 0.5);
  EXPECT_DOUBLE_EQ(reached_share(list, 1e9), 0.8);
  EXPECT_DOUBLE_EQ(reached_share({}, 5), 1);
}

TEST(MachineTime, GemmIsBoundByProductsOrByMemory) {
  const Machine machine = round_machine();
  // 2e12 FLOP at 10 TFLOP/s; 12 MB are nothing beside.
  EXPECT_NEAR(seconds_of(machine, {.m = 10000, .n = 10000, .k = 10000}, DType::f32), 0.2 + 1e-6,
              1e-9);
  // One column: 400 MB of a matrix at 100 GB/s, and two vectors of 40 kB.
  EXPECT_NEAR(seconds_of(machine, {.m = 10000, .n = 1, .k = 10000}, DType::f32),
              (400e6 + 80e3) / 100e9 + 1e-6, 1e-9);
  EXPECT_THROW(static_cast<void>(seconds_of(machine, {.m = 1, .n = 1, .k = 1}, DType::bf16)),
               base::UsageError);
}

TEST(MachineTime, GemmSustainsTheRateOfItsTypeAndSize) {
  Machine machine = round_machine();
  machine.processor->matrix = {
      {.type = DType::f32, .peak = 10e12, .reached = {{1e9, 0.2}, {1e11, 0.6}}},
      {.type = DType::bf16, .peak = 20e12, .reached = {{1, 0.5}}}};
  // 1e10 FLOP are halfway between 1e9 and 1e11.
  const program::Gemm gemm{.m = 1000, .n = 1000, .k = 5000};
  EXPECT_NEAR(seconds_of(machine, gemm, DType::f32), 1e10 / (0.4 * 10e12) + 1e-6, 1e-12);
  EXPECT_NEAR(seconds_of(machine, gemm, DType::bf16), 1e10 / (0.5 * 20e12) + 1e-6, 1e-12);
}

TEST(MachineTime, TilesComeInWaves) {
  Processor processor = *round_machine().processor;
  processor.units = 10;
  processor.tile_rows = processor.tile_columns = 128;
  const MatrixRate& rate = processor.matrix.front();
  const auto seconds = [&](std::uint32_t m, std::uint32_t n) {
    return multiply_seconds(processor, rate, {.m = m, .n = n, .k = 256, .batch = 1});
  };
  const double wave = 2.0 * 128 * 128 * 256 / 1e12;            // of one tile on one unit
  EXPECT_NEAR(seconds(128 * 5, 128 * 2), wave, 1e-12);         // 10 tiles
  EXPECT_NEAR(seconds(128 * 10, 128 * 10), 10 * wave, 1e-12);  // 100
  EXPECT_GT(seconds(128 * 11, 128), 1.25 * wave);              // 11: a second wave, of small tiles
  EXPECT_LE(seconds(128 * 11, 128), 2 * wave);
  EXPECT_GT(seconds(1, 1), 0.2 * wave);  // no part of a tile is saved
}

TEST(MachineTime, LocalOpsMoveTheirBytes) {
  Machine machine = round_machine();
  EXPECT_NEAR(local_seconds(machine, OpKind::softmax, 1e9, 1e9), 1e-2 + 1e-6, 1e-12);
  machine.software.traffic = {{.kind = OpKind::softmax, .value = 2}};
  EXPECT_NEAR(local_seconds(machine, OpKind::softmax, 1e9, 1e9), 2e-2 + 1e-6, 1e-12);
  EXPECT_NEAR(local_seconds(machine, OpKind::norm, 1e9, 1e9), 1e-2 + 1e-6, 1e-12);
  machine.memory.reset();
  EXPECT_THROW(static_cast<void>(local_seconds(machine, OpKind::norm, 1, 1)), base::UsageError);
  EXPECT_THROW(static_cast<void>(collective_seconds(machine, OpKind::all_reduce, 1,
                                                    {.members = 2, .nodes = 1, .node_members = 2})),
               base::UsageError);
}

/// Cubes in f16 on an A100 (Azure AI benchmarking guide), TFLOP/s. The sheet's one share of the
/// peak is fitted to training runs, not to these.
TEST(MachineTime, GemmsOfAnA100GrowAsMeasured) {
  const Machine machine = analysis::predict::load_system("a100-hdr");
  const std::vector<std::pair<std::uint32_t, double>> published{
      {1024, 119}, {2048, 222}, {4096, 228}, {8192, 254}, {16384, 257}};
  for (const auto& [n, teraflops] : published) {
    const double flop = 2.0 * n * n * n;
    const double model = flop / seconds_of(machine, {.m = n, .n = n, .k = n}, DType::f16) * 1e-12;
    EXPECT_NEAR(model / teraflops, 1, 0.15) << n << ": " << model;
  }
}

// Training software adds its attention kernel, the loss, and the launches of its host code. All
// expectations are formulas of the model's sizes.

constexpr double peak = 1e15, bandwidth = 1e12;

/// A machine on which only attention and the loss take long: GEMMs multiply at `peak`.
Machine machine_with(Software software) {
  return {
      .name = "test",
      .source = "a test",
      .processor = Processor{.matrix = {{.type = DType::bf16, .peak = peak}},
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
  std::string gather_bucket{};  ///< not empty: the states are sharded over two replicas
};
constexpr int hidden = 1024, sequence = 512, layers = 2, vocabulary = 4096;

/// Returns the seconds of each op of rank 0's step that `is_meant` selects.
template <class Select>
std::vector<double> times_of(const Machine& machine, const Sizes& sizes, const Select& is_meant) {
  workloads::Request request{.model = workloads::test_model(
                                 "hidden=1024 ffn=4096 heads=8 kv_heads=4 head_size=128 layers=2 "
                                 "sequence=512 vocabulary=4096"),
                             .precision = program::Precision::bf16,
                             .options = workloads::options_of("vocabulary=on elementwise=on")};
  request.options["recompute"] = sizes.recompute;
  request.options["async_reduce"] = sizes.async_reduce;
  request.options["microbatch"] = std::to_string(sizes.microbatch);
  mesh::Shape mesh{.tp = sizes.tp};
  if (!sizes.gather_bucket.empty()) {
    mesh.dp = 2;
    request.options.insert({{"zero", "3"}, {"gather_bucket", sizes.gather_bucket}});
  }
  request.options["batch"] = std::to_string(sizes.microbatch * mesh.dp);
  const program::ProgramSet set = workloads::strong(request, mesh);
  const Layout layout = packed(set.mesh.size(), 8);
  Places places{set.mesh, layout};
  const std::vector<units::Nanoseconds> times = op_times(machine, set.programs[0], places, 0);
  std::vector<double> result;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const program::Op& op = set.programs[0].step().ops[i];
    if (is_meant(op)) result.push_back(1e-9 * static_cast<double>(times[i].value()));
  }
  return result;
}
template <class Select>
double seconds_of(const Machine& machine, const Sizes& sizes, const Select& is_meant) {
  const std::vector<double> times = times_of(machine, sizes, is_meant);
  return std::accumulate(times.begin(), times.end(), 0.0);
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

// With tp = 4 each rank has one key-value head: its products are then single GEMMs, not batches.
TEST(AttentionKernelTime, IsThatOfTwoProductsForwardAndFiveBackward) {
  const Machine machine = machine_with({.name = "software", .attention = "kernel"});
  for (const Sizes& sizes :
       {Sizes{.tp = 1, .microbatch = 2}, Sizes{.tp = 4, .microbatch = 1},
        Sizes{.tp = 4, .microbatch = 4}, Sizes{.tp = 2, .microbatch = 1, .recompute = "selective"},
        Sizes{.tp = 1, .microbatch = 1, .recompute = "full"}}) {
    const double forwards = sizes.recompute == "full" ? 2 : 1;
    const double expected = forwards * attention_flop(2, sizes) / (0.5 * peak) +
                            attention_flop(5, sizes) / (0.25 * peak);
    EXPECT_NEAR(seconds_of(machine, sizes, is_any) - without_attention(sizes), expected,
                0.01 * expected)
        << "tp=" << sizes.tp << " microbatch=" << sizes.microbatch << " " << sizes.recompute;
  }
}

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

/// The host launches each op while the device executes the one before it.
TEST(SoftwareTime, AnOpTakesAtLeastWhatTheHostNeedsForTheNextOne) {
  constexpr double host = 4e-6;
  const auto forward_of = [](double op) {
    return times_of(machine_with({.name = "software", .host_op = op}), {}, is_forward);
  };
  const std::vector<double> device = forward_of(0), both = forward_of(host);
  ASSERT_EQ(device.size(), both.size());
  EXPECT_LT(std::ranges::min(device), host);
  EXPECT_GT(std::ranges::max(device), 2 * host);
  for (std::size_t i = 0; i < device.size(); ++i) {
    EXPECT_DOUBLE_EQ(both[i], std::max(device[i], host)) << "op " << i;
  }
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

/// Per-tensor gathers keep the host busy: with buckets of a byte each tensor is a bucket, which is
/// gathered twice and reduced once. With buckets of 1 GiB all tensors are one.
TEST(SoftwareTime, EachGatheredAndEachReducedBucketTakesHostTime) {
  constexpr double bucket = 1e-2;
  constexpr int tensors = 4 * layers + 1;  // and the vocabulary's
  for (const auto& [size, buckets] : {std::pair{"1B", tensors}, std::pair{"1GiB", 1}}) {
    const auto seconds = [&, size = size](double host_bucket) {
      return seconds_of(
          machine_with({.name = "software", .host_op = 1e-3, .host_bucket = host_bucket}),
          {.gather_bucket = size}, [](const program::Op& op) { return op.stream == 0; });
    };
    EXPECT_NEAR(seconds(bucket) - seconds(0), 3 * buckets * bucket, 1e-6) << size;
  }
}

TEST(SoftwareTime, AnAttentionKernelThatTheMachineLacksIsRefused) {
  const Machine machine = machine_with({.name = "software", .attention = "other"});
  EXPECT_THROW(static_cast<void>(seconds_of(machine, {}, is_any)), base::UsageError);
}

TEST(SoftwareFile, EachSheetKnowsTheKernelsOfProfiles) {
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
