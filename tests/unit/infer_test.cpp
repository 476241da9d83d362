// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The programs of inference and of serving: their work, traffic, memory and time follow from
// formulas, and they never deadlock.

#include "workloads/infer/infer.hpp"
#include "program/check.hpp"
#include "stack_samples.hpp"
#include "tests/support/unit_costs.hpp"
#include "workloads/infer/replica.hpp"
#include "workloads/serve/serve.hpp"

namespace isoscale::workloads::infer {
namespace {

Request request_of(const char* model, const mesh::Shape& mesh, Options options = {}) {
  const Request base{.model = load_model(model), .options = std::move(options)};
  return scale(base, mesh, Scaling::strong);
}

Bench bench_of(const Request& request, int index = 0) { return hooks().build(request, index); }

/// Multiplications of the layers for one token, 2 h (qkv + heads d) + 2 h ffn (2 or 3): arXiv
/// 2005.14165, table D.1, but that of attention with what is cached.
double flop_of_token(const Model& m) {
  const double h = m.hidden, d = m.head_size;
  const double qkv = (m.heads + 2.0 * m.kv_heads) * d, context = m.heads * d;
  return m.layers * 2 * h * (qkv + context + (m.gated_mlp ? 3.0 : 2.0) * m.ffn);
}
/// Scores and context against `length` cached tokens.
double flop_of_attention(const Model& m, double length) {
  return m.layers * 4.0 * m.heads * m.head_size * length;
}

TEST(Infer, FlopFollowTheFormula) {
  for (const char* name : {"tiny", "gpt-1.3b", "llama3-8b"}) {
    for (const mesh::Shape mesh : {""_mesh, "tp=4,dp=2"_mesh, "tp=2,pp=4"_mesh}) {
      SCOPED_TRACE(std::string{name} + " " + mesh::to_string(mesh));
      const double P = 48, output = 40, samples = 6 * mesh.dp;
      const Request request = request_of(name, mesh, "prompt=48 output=40 batch=6"_options);
      const Bench bench = bench_of(request);
      const Model& m = request.model;
      const double logits = 2.0 * m.hidden * m.vocabulary;
      const double prefill = samples * (P * (flop_of_token(m) + flop_of_attention(m, P)) + logits);
      EXPECT_NEAR(bench.rows.at(0).number.at("flop"), prefill, 1e-9 * prefill);
      // 16 tokens in the middle: the first has 60 before it, and attends to itself too.
      double decode = 0;
      const double first = P + (output - 16) / 2;
      for (int t = 0; t < 16; ++t) {
        decode += samples * (flop_of_token(m) + flop_of_attention(m, first + t + 1) + logits);
      }
      EXPECT_NEAR(bench.rows.at(1).number.at("flop"), decode, 1e-9 * decode);
      EXPECT_EQ(bench.rows.at(1).number.at("position"), first);
    }
  }
}

TEST(Infer, TheCacheHasTheMemoryOfItsFormula) {
  for (const mesh::Shape mesh : {""_mesh, "tp=4"_mesh, "dp=2,pp=4"_mesh, "tp=2,pp=2"_mesh}) {
    Request request = request_of("llama3-8b", mesh, "prompt=100 output=28 batch=4,8"_options);
    request.precision = Precision::bf16;
    for (int index = 0; index < 2; ++index) {
      const Bench bench = bench_of(request, index);
      const Model& m = request.model;
      const double batch = index == 0 ? 4 : 8, bf16 = 2;
      const double cache =
          2.0 * m.layers / mesh.pp * batch * m.kv_heads / mesh.tp * 128 * m.head_size * bf16;
      EXPECT_EQ(bench.rows.at(0).number.at("cache_bytes"), cache);
      for (const program::RankProgram& program : bench.set.programs) {
        std::map<program::Role, double> held;
        for (const program::Buffer& buffer : program.buffers) {
          held[buffer.role] +=
              static_cast<double>(buffer.count * program::element_size(buffer.dtype));
        }
        EXPECT_FALSE(held.contains(program::Role::gradient));
        EXPECT_FALSE(held.contains(program::Role::optimizer));
        EXPECT_EQ(held[program::Role::activation], cache);
        const double layers = flop_of_token(m) / 2 / mesh.pp / mesh.tp;
        const bool is_last = &program == &bench.set.programs.back();
        const double head = is_last ? 1.0 * m.hidden * m.vocabulary / mesh.tp : 0;
        EXPECT_EQ(held[program::Role::weight], bf16 * (layers + head));
      }
    }
  }
}

/// Two all-reduces a layer and token row; activations between stages, and a token for each sample
/// back from the last to the first.
TEST(Infer, TrafficFollowsTheFormula) {
  const mesh::Shape mesh{.tp = 2, .pp = 4};
  const Request request = request_of("tiny", mesh, "prompt=8 output=16 batch=8"_options);
  const Bench bench = bench_of(request);
  const double h = 64, f32 = 4, B = 8, rows = B * 8 + B * 16;  // of prefill and decode
  for (int stage = 0; stage < 4; ++stage) {
    const program::RankProgram& program = bench.set.of(mesh::rank_at(mesh, {.tp = 1, .pp = stage}));
    double reduced = 0, sent = 0;
    for (const program::Traffic& traffic : program::facts(program, mesh).traffic) {
      if (traffic.kind == program::OpKind::all_reduce) {
        reduced += static_cast<double>(traffic.bytes.value());
      } else {
        sent += static_cast<double>(traffic.sent.value());
      }
    }
    EXPECT_EQ(reduced, 2 * (8 / 4) * rows * h * f32);
    const double tokens = B + B * 16;
    EXPECT_EQ(sent, stage < 3 ? rows * h * f32 : tokens * f32) << stage;
  }
}

/// Returns the time of a step of a bench, in units of one group's layers on one stage.
std::int64_t simulated(const Bench& bench, std::size_t step) {
  const program::OutlineSet set = program::outline(bench.set, program::step_section(step));
  const auto plays = simulate::simulate(set, simulate::unit_costs(set), {.plays = 1});
  std::int64_t first = INT64_MAX, last = 0;
  for (const auto& rank : plays.front().ranks) {
    first = std::min(first, rank.begin.value());
    last = std::max(last, rank.end.value());
  }
  return last - first;
}

TEST(Infer, StagesAreBusyAsTheirGroupsAllow) {
  for (const int stages : {2, 4, 8}) {
    for (const int batch : {1, 2, 3, 4, 8, 24}) {
      SCOPED_TRACE(testing::Message() << stages << " stages, batch " << batch);
      Options options = "prompt=8 output=4 vocabulary=off"_options;
      options["batch"] = std::to_string(batch);
      const Request request = request_of("tiny", {.pp = stages}, options);
      const Bench bench = bench_of(request);
      const auto n = static_cast<int>(
          groups_of(static_cast<std::uint64_t>(batch), static_cast<std::uint64_t>(stages)));
      // A token visits all stages before the next begins; groups follow each other one stage apart.
      const auto of_stage = [&](double tokens, double length) {
        const Model& m = request.model;
        return batch / n * tokens * (flop_of_token(m) + flop_of_attention(m, length)) / stages;
      };
      EXPECT_EQ(static_cast<double>(simulated(bench, 0)), (n + stages - 1) * of_stage(8, 8));
      double tokens = (n - 1) * of_stage(1, 8 + 4);
      for (int t = 1; t <= 4; ++t) tokens += stages * of_stage(1, 8 + t);
      EXPECT_EQ(static_cast<double>(simulated(bench, 1)), tokens);
    }
  }
}

TEST(Infer, ProgramsHoldTogetherOnAnyMesh) {
  for (const int tp : {1, 2, 8, 16}) {
    for (const int pp : {1, 2, 4, 8}) {
      for (const int dp : {1, 2, 64 / (tp * pp)}) {
        if (dp < 1) continue;
        const mesh::Shape mesh{.tp = tp, .dp = dp, .pp = pp};
        SCOPED_TRACE(mesh::to_string(mesh));
        const Request request = request_of("tiny", mesh, "output=5 batch=1,3,8,20"_options);
        for (int index = 0; index < hooks().batches(request); ++index) {
          EXPECT_NO_THROW(program::check(bench_of(request, index).set));
        }
        EXPECT_NO_THROW(program::check(build(twin(request))));
      }
    }
  }
}

TEST(Infer, GroupsDivideTheBatch) {
  EXPECT_THAT(
      mapped(std::array{1U, 3U, 6U, 7U, 8U}, [](auto batch) { return groups_of(batch, 4); }),
      ElementsAre(1, 3, 3, 1, 4));
  EXPECT_EQ(groups_of(8, 1), 1U);
}

TEST(Infer, OptionsHaveDefaultsAndRefusals) {
  EXPECT_THAT(setting_of(request_of("tiny", {})).batches, ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(setting_of(request_of("tiny", {}, "batch=8,1"_options)).batches, ElementsAre(1, 8));
  EXPECT_EQ(request_of("tiny", {}).options.at("prompt"), "16");  // the model's sequence
  const auto refusal = [](const Options& options, Precision precision = Precision::f32) {
    const Request base{.model = load_model("tiny"), .precision = precision, .options = options};
    return testing_support::refusal([&] { static_cast<void>(scale(base, {}, Scaling::strong)); });
  };
  testing_support::expect_words_of<Options>(
      {{"batch=2,x"_options, {"'x'"}},
       {"batch=0"_options, {"from 1 to 65536"}},
       {"batch=1,1"_options, {"twice"}},
       {"batch=65536 prompt=100000"_options, {"at most 21474"}}},
      refusal);
  EXPECT_THAT(refusal({}, Precision::fp8), HasSubstr("--dtype bf16"));
}

TEST(Infer, ATwinIsSmallAndAnsweredByOneRank) {
  const mesh::Shape mesh{.tp = 4, .dp = 2, .pp = 4};
  const Request small = twin(request_of("llama3-70b", mesh, "batch=1,8,64"_options));
  EXPECT_THAT(setting_of(small).batches, ElementsAre(8));  // four groups of two
  EXPECT_EQ(small.model.kv_heads % mesh.tp, 0);
  EXPECT_EQ(small.model.layers, 8);
  EXPECT_TRUE(small.model.gated_mlp);
  const Request one = reference(small);
  EXPECT_EQ(one.mesh, ""_mesh);
  EXPECT_THAT(setting_of(one).batches, ElementsAre(16));
  EXPECT_EQ(one.precision, Precision::f64);
}

}  // namespace
}  // namespace isoscale::workloads::infer

namespace isoscale::workloads::serve {
namespace {

Request served(const Options& options) {
  return {.model = model_of("ffn=32 heads=4 kv_heads=4 head_size=4 layers=2 sequence=6"),
          .options = options};
}

TEST(ServePrograms, WhatExcludesEachOtherIsRefusedWithTheWayOut) {
  testing_support::expect_words_of<Options>(
      {{"rate=fast"_options, {"'fast'"}},
       {"rate=-1"_options, {"above 0"}},
       {"rate=inf"_options, {"above 0"}},
       {"slo=0"_options, {"slo"}},
       {"burst=4"_options, {"arrivals=bursty"}},
       {"output=65536 max_batch=2"_options, {"at most 32768"}},
       {"rate=2.5 slo=0.5 arrivals=bursty"_options, {}}},
      [](const Options& options) {
        return testing_support::refusal([&] { (void)scale(served(options), {}, Scaling::strong); });
      });
}

TEST(ServePrograms, SizesArePowersOfTwoAndTheLargest) {
  EXPECT_THAT(sizes_of(1), ElementsAre(1));
  EXPECT_THAT(sizes_of(8), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(sizes_of(6), ElementsAre(1, 2, 4, 6));
}

TEST(ServePrograms, AReplicaHasAPrefillAndADecodeForEachTokenAndSize) {
  const Options options = "output=3 max_batch=3"_options;
  for (const mesh::Shape& mesh : {""_mesh, "tp=2,dp=3"_mesh, "tp=2,dp=2,pp=2"_mesh}) {
    const Request request = scale(served(options), mesh, Scaling::strong);
    const program::ProgramSet set = replica_programs(request);
    EXPECT_EQ(set.mesh.dp, 1);
    EXPECT_EQ(set.mesh.size() * mesh.dp, mesh.size());
    EXPECT_NO_THROW(program::check(set));
    EXPECT_NO_THROW(program::check(hooks().build(request, 0).set));
    for (const program::RankProgram& one : set.programs) EXPECT_EQ(one.steps.size(), 3U * 3U);
  }
}

/// FLOP of one section over all ranks.
double flop_of(const program::ProgramSet& set, program::Section section) {
  double sum = 0;
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    for (const auto& op : program::outline(set.of(rank), section, set.mesh).ops) sum += op.flop;
  }
  return sum;
}

/// GEMMs of a token: 2 h (h + 2 kv + h) for projections, 2 x 2 x heads x d x length for attention,
/// 2 x 2 h f for the pair, and 2 h V for a sample's newest token.
TEST(ServePrograms, WorkIsOfTheBatchAndThePosition) {
  const Request request = scale(served("output=3 max_batch=4"_options), {.tp = 2}, Scaling::strong);
  const program::ProgramSet set = replica_programs(request);
  const double h = 16, f = 32, layers = 2, vocabulary = 32, prompt = 6;
  const auto token = [&](double length) {
    return layers * (2 * h * 4 * h + 4 * h * length + 4 * h * f);
  };
  for (const auto& [index, batch] : {std::pair{0U, 1.0}, std::pair{1U, 2.0}, std::pair{2U, 4.0}}) {
    EXPECT_DOUBLE_EQ(flop_of(set, section_of(index, 0, 3)),
                     batch * (prompt * token(prompt) + 2 * h * vocabulary));
    for (const std::uint64_t next : {1U, 2U}) {
      EXPECT_DOUBLE_EQ(flop_of(set, section_of(index, next, 3)),
                       batch * (token(prompt + static_cast<double>(next)) + 2 * h * vocabulary));
    }
  }
}

TEST(ServePrograms, TheTwinIsThatOfInference) {
  const Request request = scale(served("max_batch=4 output=2"_options), {.dp = 2}, Scaling::strong);
  const Request relative = twin(request);
  EXPECT_EQ(relative.keep, Keep::observables);
  EXPECT_EQ(relative.options.at("batch"), "2");
  EXPECT_NO_THROW(program::check(infer::build(relative)));
}

}  // namespace
}  // namespace isoscale::workloads::serve
