// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Steps without their communication, written by hand and of every workload that has steps, and the
// programs of inference, which follow from formulas and never deadlock.

#include "made_programs.hpp"
#include "program/check_races_and_matching.hpp"
#include "program/checksum_replay_and_solo_sections.hpp"
#include "program/op_clocks_and_buffer_history.hpp"
#include "stack_samples.hpp"
#include "tests/support/unit_costs.hpp"
#include "workloads/infer/infer.hpp"
#include "workloads/infer/replica.hpp"

namespace isoscale::program {
namespace {

using Lines = std::vector<std::string>;

/// Returns "copy 0 <- 2:1" for a copy on stream 0 that waits for the first op of stream 2; "*"
/// after the kind where others wait for it.
Lines described(const Program& program) {
  Lines lines;
  for (const Op& op : program.ops) {
    std::string line{name(kind_of(op.payload))};
    line += (op.awaited ? "* " : " ") + std::to_string(op.stream);
    for (const Wait& wait : program.waits_of(op)) {
      line += " <- " + std::to_string(wait.stream) + ":" + std::to_string(wait.count);
    }
    lines.push_back(line);
  }
  return lines;
}

/// Returns a program for a mesh of two that plays "fill 0 a", "copy 0 a b" (from a to b) and
/// "all_reduce 1 a" on the streams that are named; setup has filled the buffers a, b and c.
RankProgram playing(const Lines& ops) {
  Builder builder{{.dp = 2}};
  for (const char* stream : {"network", "side", "last"}) static_cast<void>(builder.stream(stream));
  std::map<std::string, Slice> buffers;
  for (const char* buffer : {"a", "b", "c"}) {
    builder.emit(0, fill(buffers[buffer] = builder.whole(floats(builder, 64))));
  }
  builder.begin(Section::step);
  builder.at({.phase = Phase::forward, .layer = 3});
  for (const std::string& op : ops) {
    std::istringstream words{op};
    std::string kind, from, to;
    int stream = 0;
    words >> kind >> stream >> from >> to;
    const Slice slice = buffers.at(from);
    const Payload payload = kind == "fill" ? Payload{fill(slice)}
                            : kind == "copy"
                                ? Payload{row_copy(slice, buffers.at(to))}
                                : Payload{Collective{.kind = CollectiveKind::all_reduce,
                                                     .axes = mesh::Axis::dp,
                                                     .send = slice,
                                                     .receive = slice}};
    builder.emit(static_cast<StreamId>(stream), payload);
  }
  return builder.finish();
}

TEST(SoloStep, KeepsTheOrderOfWhatDoesNotCommunicateAndNoWaitMore) {
  struct Case {
    const char* what;
    Lines step, solo, whole = {};
  };
  for (const Case& one : std::vector<Case>{
           {"a wait that leads back to the same stream goes",
            {"fill 0 a", "all_reduce 1 a", "copy 0 a b"},
            {"fill 0", "copy 0"},
            {"fill* 0", "all_reduce* 1 <- 0:1", "copy 0 <- 1:1"}},
           {"on another stream it waits for what the communication waited for",
            {"fill 0 b", "fill 0 a", "all_reduce 1 a", "copy 2 a b"},
            {"fill 0", "fill* 0", "copy 2 <- 0:2"},
            {"fill 0", "fill* 0", "all_reduce* 1 <- 0:2", "copy 2 <- 1:1"}},
           {"one communication follows another",
            {"fill 0 a", "all_reduce 1 a", "all_reduce 2 a", "copy 3 a b"},
            {"fill* 0", "copy 3 <- 0:1"}},
           {"only ops that are left are counted",
            {"all_reduce 1 a", "all_reduce 1 a", "fill 1 b", "all_reduce 1 a", "copy 0 b c",
             "fill 1 a", "copy 0 a c"},
            {"fill* 1", "copy 0 <- 1:1", "fill* 1", "copy 0 <- 1:2"},
            {"all_reduce 1", "all_reduce 1", "fill* 1", "all_reduce 1", "copy 0 <- 1:3", "fill* 1",
             "copy 0 <- 1:5"}},
           {"the communication waited for nothing", {"all_reduce 1 a", "copy 0 a b"}, {"copy 0"}},
           {"nothing is waited for twice",
            {"fill 0 a", "all_reduce 1 a", "copy 2 a b", "all_reduce 1 a", "copy 2 a c"},
            {"fill* 0", "copy 2 <- 0:1", "copy 2"}},
           {"communication alone", {"all_reduce 1 a"}, {}}}) {
    SCOPED_TRACE(one.what);
    const RankProgram program = playing(one.step);
    if (!one.whole.empty()) {
      ASSERT_EQ(described(program.step()), one.whole);
    }
    const Program solo = without_communication(program.step());
    EXPECT_EQ(described(solo), one.solo);
    std::vector<std::uint32_t> kept;
    for (std::uint32_t i = 0; i < one.step.size(); ++i) {
      if (!one.step[i].starts_with("all_reduce")) kept.push_back(i);
    }
    EXPECT_EQ(solo_ops(program.step()), kept);
    for (const Op& op : solo.ops) {
      EXPECT_EQ(op.place.phase, Phase::forward);
      EXPECT_EQ(op.place.layer, 3);
    }
  }
}

}  // namespace
}  // namespace isoscale::program

namespace isoscale::workloads {
namespace {

/// Each op that is left comes after the same ones as before, and after no others.
void expect_same_order(const program::Program& step, const program::Program& solo) {
  // By stream, how many of its first ops do not communicate; entry i of the first i.
  std::vector<std::vector<std::uint32_t>> kept(program::max_streams, {0});
  for (const program::Op& op : step.ops) {
    auto& counts = kept[op.stream];
    counts.push_back(counts.back() + (communicates(kind_of(op.payload)) ? 0 : 1));
  }
  const auto before = program::clocks_before(step);
  const auto alone = program::clocks_before(solo);
  const auto ops = program::solo_ops(step);
  ASSERT_EQ(ops.size(), solo.ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ASSERT_FALSE(communicates(kind_of(solo.ops[i].payload)));
    ASSERT_EQ(solo.ops[i].stream, step.ops[ops[i]].stream);
    for (std::size_t stream = 0; stream < program::max_streams; ++stream) {
      ASSERT_EQ(alone[i].done[stream], kept[stream][before[ops[i]].done[stream]])
          << "op " << i << ", stream " << stream;
    }
  }
}

/// An op is awaited exactly where some wait names it.
void expect_awaited(const program::Program& solo) {
  std::vector<std::vector<std::size_t>> of_stream(program::max_streams);
  for (std::size_t i = 0; i < solo.ops.size(); ++i) of_stream[solo.ops[i].stream].push_back(i);
  std::vector<bool> awaited(solo.ops.size(), false);
  for (const program::Op& op : solo.ops) {
    for (const program::Wait& wait : solo.waits_of(op)) {
      ASSERT_NE(wait.stream, op.stream);
      awaited[of_stream[wait.stream].at(wait.count - 1)] = true;
    }
  }
  for (std::size_t i = 0; i < solo.ops.size(); ++i) EXPECT_EQ(solo.ops[i].awaited, awaited[i]) << i;
}

void expect_sound(const Request& request, const Workload& workload) {
  program::ProgramSet set = workload.build(request);
  const program::Section section = program::add_solo_step(set);
  EXPECT_NO_THROW(program::check(set));
  for (const program::RankProgram& program : set.programs) {
    const program::Program& solo = program.section(section);
    EXPECT_FALSE(solo.ops.empty());
    expect_same_order(program.step(), solo);
    expect_awaited(solo);
  }
}

TEST(SoloWorkloads, PassTheCheckAndKeepTheirOrder) {
  int points = 0;
  for (const Workload& workload : registry()) {
    if (workload.is_bench()) continue;
    for (const mesh::Shape& mesh :
         {""_mesh, "dp=4"_mesh, "tp=4"_mesh, "pp=4"_mesh, "tp=2,dp=2"_mesh, "dp=2,pp=2"_mesh,
          "tp=2,pp=4"_mesh, "tp=2,dp=2,pp=2"_mesh}) {
      const auto is_missing = [&](mesh::Axis axis) {
        return mesh[axis] > 1 && !workload.axes.contains(axis);
      };
      if (std::ranges::any_of(mesh::all_axes, is_missing)) continue;
      SCOPED_TRACE(std::string{workload.name} + ", " + mesh::to_string(mesh));
      expect_sound(workload.scale(small(4, 4), mesh, Scaling::weak), workload);
      ++points;
    }
  }
  EXPECT_GE(points, 3 * 2 + 8);  // dp, tp, pp on their axis and hybrid on all
  for (const Options& options : {"tp_output=gather"_options, "schedule=gpipe"_options}) {
    expect_sound(scaled(small(4, 4, options), {.tp = 2, .dp = 2, .pp = 2}, Scaling::weak),
                 find_workload("hybrid"));
  }
}

}  // namespace
}  // namespace isoscale::workloads

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
/// A decoded token attends to whole blocks of 16 tokens.
double in_blocks(double tokens) { return 16 * std::ceil(tokens / 16); }
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
        const double length = in_blocks(first + t + 1);
        decode += samples * (flop_of_token(m) + flop_of_attention(m, length) + logits);
      }
      EXPECT_NEAR(bench.rows.at(1).number.at("flop"), decode, 1e-9 * decode);
      EXPECT_EQ(bench.rows.at(1).number.at("position"), first);
    }
  }
}

TEST(Infer, TheCacheHasTheMemoryOfItsFormula) {
  for (const mesh::Shape mesh : {""_mesh, "tp=4"_mesh, "dp=2,pp=4"_mesh, "tp=2,pp=2"_mesh}) {
    Request request = request_of("llama3-8b", mesh, "prompt=100 output=20 batch=4,8"_options);
    request.precision = Precision::bf16;
    for (int index = 0; index < 2; ++index) {
      const Bench bench = bench_of(request, index);
      const Model& m = request.model;
      const double batch = index == 0 ? 4 : 8, bf16 = 2;
      const double cache =
          2.0 * m.layers / mesh.pp * batch * m.kv_heads / mesh.tp * 128 * m.head_size * bf16;
      EXPECT_EQ(bench.rows.at(0).number.at("cache_bytes"), cache);
      for (const program::RankProgram& program : bench.set.programs) {
        EXPECT_EQ(bytes_of(program, program::Role::gradient), 0);
        EXPECT_EQ(bytes_of(program, program::Role::optimizer), 0);
        EXPECT_EQ(bytes_of(program, program::Role::activation), cache);
        const double layers = flop_of_token(m) / 2 / mesh.pp / mesh.tp;
        const bool is_last = &program == &bench.set.programs.back();
        const double head = is_last ? 1.0 * m.hidden * m.vocabulary / mesh.tp : 0;
        EXPECT_EQ(bytes_of(program, program::Role::weight), bf16 * (layers + head));
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
      double tokens = (n - 1) * of_stage(1, in_blocks(8 + 4));
      for (int t = 1; t <= 4; ++t) tokens += stages * of_stage(1, in_blocks(8 + t));
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
