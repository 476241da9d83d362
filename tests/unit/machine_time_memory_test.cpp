// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Times of ops from a data sheet, and the time and memory that training software takes, against
// formulas and published values.

#include "analysis/predict/step_estimate.hpp"
#include "analysis/predict/system_file.hpp"
#include "analysis_test.hpp"
#include "program/check_races_and_matching.hpp"
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

// With tp = 4 each rank has one key-value head: its products are then single GEMMs, not batches.
TEST(AttentionKernelTime, IsThatOfTwoProductsForwardAndFiveBackward) {
  const Machine machine = machine_with({.name = "software", .attention = "kernel"});
  Machine without = machine;  // its attention takes no time
  without.processor->attention = {{.name = "kernel", .forward = 1e9, .backward = 1e9}};
  for (const Sizes& sizes :
       {Sizes{.tp = 1, .microbatch = 2}, Sizes{.tp = 4, .microbatch = 1},
        Sizes{.tp = 4, .microbatch = 4}, Sizes{.tp = 2, .microbatch = 1, .recompute = "selective"},
        Sizes{.tp = 1, .microbatch = 1, .recompute = "full"}}) {
    const double forwards = sizes.recompute == "full" ? 2 : 1;
    const double expected = forwards * attention_flop(2, sizes) / (0.5 * peak) +
                            attention_flop(5, sizes) / (0.25 * peak);
    EXPECT_NEAR(seconds_of(machine, sizes, is_any) - seconds_of(without, sizes, is_any), expected,
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

namespace isoscale::workloads {
namespace {

using program::Role;

constexpr double h = 64, ffn = 256, heads = 4, head_size = 16, s = 32, b = 2, vocabulary = 512;
constexpr double parameters_of_layer = 4 * h * h + 2 * h * ffn;

/// A model of four layers with two samples in a microbatch.
Request trained(Trainer trainer, const mesh::Shape& mesh, Options options,
                Precision precision = Precision::bf16) {
  options.insert({{"microbatch", "2"}, {"elementwise", "on"}, {"optimizer", "adam"}});
  options.try_emplace("microbatches", "1");
  Request base{.model = test_model("hidden=64 ffn=256 heads=4 head_size=16 layers=4 sequence=32 "
                                   "vocabulary=512"),
               .precision = precision,
               .options = std::move(options),
               .trainer = trainer};
  base.model.tied_embedding = false;
  return scaled(base, mesh, Scaling::strong);
}

/// The largest number of bytes of a role on the ranks of a stage.
double bytes(const Request& request, Role role, int stage = 0) {
  const program::ProgramSet set = find_workload("hybrid").build(request);
  return peak_of(facts_of(set, mesh::rank_at(request.mesh, {.pp = stage})), role);
}

TEST(TrainerMemory, HasOneNumberForEachRowOfFusedScores) {
  // Scores have 2 bytes an element. Casts to fp8 keep only a copy of attention's output, which a
  // fused kernel reads in backward: 2 bytes an element more.
  for (const auto& [precision, output] : {std::pair{Precision::bf16, 0}, {Precision::fp8, 2}}) {
    const auto kept = [&](Trainer trainer) {
      return bytes(trained(trainer, {}, {}, precision), Role::activation);
    };
    const double rows = b * heads * s;
    EXPECT_EQ(kept(Trainer::separate_attention) - kept(Trainer::fused_attention),
              4 * (rows * (2 * s - 4) - output * b * s * heads * head_size));
    EXPECT_EQ(kept(Trainer::none), kept(Trainer::separate_attention));
  }
}

TEST(TrainerMemory, IsOfTheSameOpsAndIsNeverRun) {
  const Workload& hybrid = find_workload("hybrid");
  const program::ProgramSet run = hybrid.build(trained(Trainer::none, {}, {}));
  const program::ProgramSet fused = hybrid.build(trained(Trainer::fused_attention, {}, {}));
  EXPECT_EQ(fused.of(0).step().ops.size(), run.of(0).step().ops.size());
  EXPECT_EQ(flop_of(fused), flop_of(run));
  EXPECT_LT(fused.of(0).arena_bytes.front(), run.of(0).arena_bytes.front());
  EXPECT_NO_THROW(program::check(run));
  EXPECT_THAT(testing_support::refusal<base::Error>([&] { program::check(fused); }),
              HasSubstr("can be predicted, but not run"));
}

TEST(TrainerMemory, HasTheEmbeddingAndShardsTheOptimizerOverContextParallelRanks) {
  const double of_layers = 2 * parameters_of_layer, table = vocabulary * h;
  const Request request = trained(Trainer::fused_attention, {.cp = 2, .dp = 4, .pp = 2},
                                  {{"vocabulary", "on"}, {"zero", "1"}, {"microbatches", "2"}});
  // The first stage has an embedding, and the last stage the output projection.
  for (const int stage : {0, 1}) {
    EXPECT_EQ(bytes(request, Role::weight, stage), 2 * (of_layers + table));
    EXPECT_EQ(bytes(request, Role::gradient, stage), 4 * (of_layers + table));
    EXPECT_EQ(bytes(request, Role::master, stage), 4 * (of_layers + table) / 8);
  }
  Request tied = request;
  tied.model.tied_embedding = true;
  EXPECT_EQ(bytes(tied, Role::weight, 0), 2 * (of_layers + table));
  // A single stage uses one matrix twice if they are tied.
  const Request alone = trained(Trainer::fused_attention, {}, {{"vocabulary", "on"}});
  tied = alone;
  tied.model.tied_embedding = true;
  EXPECT_EQ(bytes(alone, Role::weight) - bytes(tied, Role::weight), 2 * table);
}

TEST(TrainerMemory, KeepsWeightsOnceWhereTheyAreShardedAndInEightBitsWithFp8) {
  const double all = 4 * parameters_of_layer;
  const Request sharded = trained(Trainer::fused_attention, {.dp = 2}, {{"zero", "3"}});
  EXPECT_LE(bytes(sharded, Role::weight), 1);
  EXPECT_EQ(bytes(sharded, Role::master), 4 * all / 2);
  const auto in_fp8 = [](Trainer trainer) {
    return bytes(trained(trainer, {}, {}, Precision::fp8), Role::weight);
  };
  // The copies in 8 bits are the same, and the weights in bf16 take at most a byte.
  EXPECT_NEAR(in_fp8(Trainer::none) - in_fp8(Trainer::fused_attention), 2 * all, 1);
}

TEST(TrainerMemory, AddsGradientsUpInTheTypeInWhichTheyAreSent) {
  const auto gradients = [](const char* type) {
    return bytes(trained(Trainer::fused_attention, {.dp = 2}, {{"grad_dtype", type}}),
                 Role::gradient);
  };
  EXPECT_EQ(gradients("same"), 4 * 4 * parameters_of_layer);
  EXPECT_EQ(gradients("bf16"), 4 * 2 * parameters_of_layer);
}

TEST(TrainerMemory, HasLogitsInF32BesideTheNarrowOnes) {
  const auto kept = [](Trainer trainer) {
    return bytes(trained(trainer, {}, {{"vocabulary", "on"}}), Role::activation);
  };
  EXPECT_EQ(kept(Trainer::separate_attention) - kept(Trainer::none), 4 * b * s * vocabulary);
}

TEST(TrainerMemory, KeepsTheNumbersOfTokensInPlaceOfInputs) {
  const auto inputs = [](Trainer trainer, const char* where) {
    return bytes(trained(trainer, {.pp = 2}, {{"microbatches", "8"}, {"input", where}}),
                 Role::input);
  };
  EXPECT_EQ(inputs(Trainer::none, "resident"), 8 * b * s * h * 2);
  // Two microbatches are in flight on the first of two stages.
  EXPECT_EQ(inputs(Trainer::fused_attention, "resident"), b * s * (2 * h * 2 + 6 * 8));
  EXPECT_EQ(inputs(Trainer::fused_attention, "pinned"), b * s * 8 * 8);
}

analysis::predict::StepMemory largest_memory(const program::ProgramSet& set) {
  analysis::predict::StepMemory most;
  for (const program::RankProgram& program : set.programs) {
    const analysis::predict::StepMemory one = analysis::predict::step_memory(program);
    most = {.all = std::max(most.all, one.all),
            .device = std::max(most.device, one.device),
            .host = std::max(most.host, one.host)};
  }
  return most;
}

TEST(TrainerMemory, OfALlamaStepIsNearItsLog) {
  // A recipe of NeMo on 8 H100 (cp=2, dp=4) logs 66 GiB. It adds gradients up in bf16; here they
  // have 4 bytes, which is 15 GiB more.
  const Request base{.model = load_model("llama3-8b"),
                     .precision = Precision::bf16,
                     .options = options_of("microbatch=1 batch=128 zero=1 elementwise=on "
                                           "vocabulary=on optimizer=adam"),
                     .trainer = Trainer::fused_attention};
  const program::ProgramSet set = strong(base, {.cp = 2, .dp = 4});
  constexpr double gib = 1024.0 * 1024 * 1024;
  const double narrow_gradients = 2 * 8.03e9;
  EXPECT_NEAR((largest_memory(set).device - narrow_gradients) / gib, 66, 0.1 * 66);
}

TEST(TrainerMemory, OfOffloadedStatesIsOnTheHost) {
  const auto memory = [](const char* what) {
    return largest_memory(find_workload("hybrid").build(
        trained(Trainer::none, {}, {{"offload", what}, {"bucket", "65536"}})));
  };
  const analysis::predict::StepMemory without = memory("none"), with = memory("optimizer");
  const double states = 4 * 12 * parameters_of_layer;
  EXPECT_EQ(without.host, 0);
  EXPECT_EQ(without.all, without.device);
  EXPECT_NEAR(with.host, states, 1024);
  EXPECT_EQ(with.all, with.device + with.host);
  EXPECT_LT(with.device, without.device);
}

}  // namespace
}  // namespace isoscale::workloads
