// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The memory of programs that stand for training software, against formulas and a published value.

#include "analysis/predict/step_estimate.hpp"
#include "program/check.hpp"
#include "stack_samples.hpp"

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

/// Returns the largest memory of any program, separately for each kind of memory.
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
