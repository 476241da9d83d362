// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Rows over tp, the sequence over cp: bytes, FLOP, memory and overlap are those of their formulas.

#include "program/check_races_and_matching.hpp"
#include "stack_samples.hpp"
#include "tests/support/unit_costs.hpp"

namespace isoscale::workloads {
namespace {

using mesh::Axis;
using program::OpKind;
using simulate::step_time;

constexpr double row_b = 2, row_s = 64, row_h = 16, row_ffn = 64;
constexpr double row_heads = 8, row_kv_heads = 4, row_d = 2, row_element = 4;

/// A model whose sequence divides by much, for programs that split rows or the sequence.
Request row_request(int layers, int microbatches, Options options = {}) {
  return request_of("kv_heads=4 sequence=64 vocabulary=64 layers=" + std::to_string(layers),
                    microbatches, std::move(options));
}

double sent(const program::ProgramSet& set, OpKind kind, mesh::AxisSet axes) {
  return sent_in(facts_of(set), kind, axes);
}

double activations(const Request& base, const mesh::Shape& mesh) {
  return peak_of(facts_of(strong(base, mesh)), program::Role::activation);
}

constexpr double layer_weights = row_h * (row_heads + 2 * row_kv_heads) * row_d +
                                 row_heads * row_d * row_h + 2 * row_h * row_ffn;

/// Returns the FLOP of a layer forward and backward, 2 a multiply-add: 3 passes over the weights,
/// and scores and context forward, twice that backward.
double layer_flop(double local, double sequence) {
  return 3 * 2 * row_b * local * (layer_weights + 2 * sequence * row_heads * row_d);
}

TEST(ContextParallel, MovesBlocksOfKeysAndValues) {
  // Forward cp - 1 blocks of keys and as many of values; backward these again and their gradients.
  constexpr int layers = 2, m = 3;
  for (const int cp : {2, 4, 8}) {
    const auto set = strong(row_request(layers, m), {.cp = cp});
    const double block = row_s / cp * row_b * row_kv_heads * row_d * row_element;
    EXPECT_DOUBLE_EQ(sent(set, OpKind::exchange, Axis::cp),
                     layers * m * (2 + 4) * (cp - 1) * block);
    const std::uint64_t forward = sum_over_step(set, [](const program::OutlineOp& op) {
      const bool is_forward = op.place.phase == program::Phase::forward;
      return is_forward && op.kind == OpKind::exchange ? op.bytes : 0;
    });
    EXPECT_EQ(forward, layers * m * 2 * (cp - 1) * block);
  }
}

TEST(ContextParallel, ReducesEveryGradientOverCpAndDp) {
  for (const mesh::Shape mesh : {"cp=4"_mesh, "cp=2,dp=2"_mesh}) {
    double bytes = 0;
    for (const program::Traffic& entry : facts_of(strong(row_request(2, 4), mesh)).traffic) {
      if (entry.kind != OpKind::all_reduce) continue;
      EXPECT_EQ(mesh::group_size(mesh, entry.axes), 4);
      bytes += static_cast<double>(entry.bytes.value());
    }
    EXPECT_DOUBLE_EQ(bytes, 2 * layer_weights * row_element);
  }
}

TEST(ContextParallel, GrowsTheSequenceUnderWeakScalingAndCountsTheWork) {
  constexpr int layers = 2, m = 3;
  const Workload& hybrid = find_workload("hybrid");
  const Request base = row_request(layers, m);
  const double one = hybrid.work_per_step(hybrid.scale(base, {}, Scaling::weak));
  for (const mesh::Shape mesh : {"cp=2"_mesh, "cp=8"_mesh, "tp=2,cp=2,dp=2"_mesh}) {
    const Request request = hybrid.scale(base, mesh, Scaling::weak);
    EXPECT_EQ(request.model.sequence, base.model.sequence * mesh.cp);
    const double flop = program::facts(hybrid.build(request).of(0), mesh).flop.value();
    EXPECT_DOUBLE_EQ(flop, layers * m * layer_flop(row_s, row_s * mesh.cp));
    // Throughput counts work: what all ranks do, as a multiple of what the one does.
    EXPECT_DOUBLE_EQ(hybrid.work_per_step(request) / one,
                     mesh.size() * flop / (layers * m * layer_flop(row_s, row_s)));
  }
}

TEST(ContextParallel, HidesAllButTheLastBlockUnderTheGemmsOfTheBlocksThatAreThere) {
  // A block travels in less time than it is multiplied in, so all but the last is hidden: with
  // nothing left to multiply, the last sum of the keys' gradient comes under the last product of
  // the queries' gradient.
  for (const int cp : {2, 4}) {
    const auto set = strong(row_request(1, 1), {.cp = cp});
    const double block = row_s / cp * row_b * row_kv_heads * row_d * row_element;
    const double product = 2 * row_b * row_heads * row_s / cp * row_s / cp * row_d;
    ASSERT_LT(block, product);
    const auto is_block = [](OpKind kind) { return kind == OpKind::exchange; };
    EXPECT_EQ(step_time(set, program::Folding::as_streamed, is_block), flop_of(set)) << cp;
  }
}

constexpr double activation = row_s * row_b * row_h * row_element;  // bsh, in bytes

Options rows(Options more = {}) {
  more["sequence_parallel"] = "on";
  return more;
}

/// Numbers of arXiv 2205.05198: a layer's 4 all-reduces of bsh move 8 bsh (t-1)/t; 4 all-gathers
/// and 4 reduce-scatters move the same. Each of its two pairs gathers its input once more.
TEST(SequenceParallel, MovesWhatAllReducesMoveAndTheInputsOnceMore) {
  constexpr int layers = 2, m = 3;
  for (const int t : {2, 4}) {
    const double share = layers * m * activation * (t - 1) / t;
    const auto moved = [&](const Options& options, OpKind kind) {
      return sent(strong(row_request(layers, m, options), {.tp = t}), kind, Axis::tp);
    };
    for (const char* n : {"1", "2", "8"}) {
      EXPECT_DOUBLE_EQ(moved(rows({{"chunks", n}}), OpKind::all_gather), (4 + 2) * share) << n;
      EXPECT_DOUBLE_EQ(moved(rows({{"chunks", n}}), OpKind::reduce_scatter), 4 * share) << n;
      EXPECT_EQ(moved(rows({{"chunks", n}}), OpKind::all_reduce), 0);
      EXPECT_DOUBLE_EQ(moved({{"chunks", n}}, OpKind::all_reduce), 8 * share) << n;
    }
    EXPECT_DOUBLE_EQ(moved(rows("ring=on"_options), OpKind::exchange), (8 + 2) * share);
    EXPECT_EQ(moved(rows("ring=on"_options), OpKind::all_gather), 0);
  }
}

TEST(SequenceParallel, VocabularyAddsTwoGathersAndAScatter) {
  constexpr int m = 2;
  const mesh::Shape mesh{.tp = 4};
  const auto bytes = [&](const char* vocabulary, OpKind kind) {
    return sent(strong(row_request(1, m, rows({{"vocabulary", vocabulary}})), mesh), kind,
                Axis::tp);
  };
  const double share = m * activation * 3 / 4;
  EXPECT_DOUBLE_EQ(bytes("on", OpKind::all_gather) - bytes("off", OpKind::all_gather), 2 * share);
  EXPECT_DOUBLE_EQ(bytes("on", OpKind::reduce_scatter) - bytes("off", OpKind::reduce_scatter),
                   share);
}

TEST(SequenceParallel, HandsOnAShareOfTheRows) {
  const auto handed_on = [](const Options& options) {
    const auto set = strong(row_request(2, 4, options), {.tp = 4, .pp = 2});
    return sent(set, OpKind::exchange, Axis::pp);
  };
  EXPECT_DOUBLE_EQ(handed_on({}), 4 * activation);
  EXPECT_DOUBLE_EQ(handed_on(rows()), activation);
}

TEST(SplitRows, KeepAShareOfEveryActivation) {
  // Per layer and microbatch: the inputs of the two pairs, QKV, scores, context, inner. A rank has
  // its share of all of these, but tp alone leaves the first two whole on every rank. (The input of
  // the model is of another role, and takes the place of one of those; the output of the last layer
  // is one more.)
  constexpr int layers = 3;
  constexpr double split = row_s * row_b * (row_heads + 2 * row_kv_heads) * row_d +
                           row_b * row_heads * row_s * row_s + row_s * row_b * row_heads * row_d +
                           row_s * row_b * row_ffn;
  constexpr double whole = layers * (2 * activation + split * row_element);
  for (const int cp : {1, 2, 8}) {
    EXPECT_DOUBLE_EQ(activations(row_request(layers, 1), {.cp = cp}), whole / cp);
  }
  for (const int t : {2, 4}) {
    const mesh::Shape mesh{.tp = t};
    const double plain = layers * (2 * activation + split * row_element / t);
    EXPECT_DOUBLE_EQ(activations(row_request(layers, 1), mesh), plain);
    for (const Options& options : {rows(), rows("chunks=4"_options), rows("ring=on"_options)}) {
      EXPECT_DOUBLE_EQ(activations(row_request(layers, 1, options), mesh), whole / t);
    }
  }
}

TEST(SequenceParallel, DoesTheSameFlopInOneProgramForAGroup) {
  for (const Options& options : {rows(), rows("chunks=4"_options), rows("ring=on"_options)}) {
    EXPECT_EQ(strong(row_request(2, 3, options), {.tp = 4, .pp = 2}).programs.size(), 2U);
  }
  const auto flop = [](const Options& options) {
    return flop_of(strong(row_request(2, 3, options), {.tp = 4}));
  };
  for (const Options& options :
       {rows(), rows("chunks=4"_options), rows("ring=on"_options), "chunks=8"_options}) {
    EXPECT_EQ(flop(options), flop({}));
  }
  EXPECT_EQ(flop(rows("vocabulary=on"_options)), flop("vocabulary=on"_options));
}

/// Each of a layer's four all-reduces exposes its last chunk, save that of the MLP's input
/// gradient, which has the weight gradient above it. A chunk travels in less time than the next is
/// multiplied in: the shortest GEMM is that of the projection, 2 (sb/n)(h/t) h.
TEST(Chunks, ExposeOneChunkOfEachSumThatNothingElseHides) {
  for (const int n : {2, 4, 8}) {
    ASSERT_LE(activation / n, 2 * row_s * row_b / n * row_h / 2 * row_h);
    const auto set = strong(row_request(1, 1, {{"chunks", std::to_string(n)}}), {.tp = 2});
    EXPECT_DOUBLE_EQ(step_time(set), flop_of(set) + 3 * activation / n) << n;
    EXPECT_DOUBLE_EQ(step_time(set, program::Folding::folded), flop_of(set) + 4 * activation);
  }
  const auto whole = strong(row_request(1, 1), {.tp = 2});
  EXPECT_DOUBLE_EQ(step_time(whole), flop_of(whole) + 4 * activation);
}

/// Returns the time of a step in which nothing is multiplied.
double exposed(const Options& options, const mesh::Shape& mesh) {
  const auto set = strong(row_request(1, 1, options), mesh);
  return step_time(set) - flop_of(set);
}

/// Forward each pair exposes its first gather and its last scatter. Backward the same for the
/// gradient; the input, gathered again, and the scatters of the MLP hide under GEMMs, the last ones
/// of the layer do not.
TEST(Chunks, OfSplitRowsExposeTheFirstThatComesAndTheLastThatGoes) {
  const auto time = [](const char* n) { return exposed(rows({{"chunks", n}}), {.tp = 2}); };
  EXPECT_LT(time("4"), 0.5 * time("1"));
  EXPECT_LT(time("8"), time("4"));
  // A ring hides its steps under the GEMMs of the blocks that are there.
  EXPECT_LT(exposed(rows("ring=on"_options), {.tp = 4}), 0.5 * exposed(rows(), {.tp = 4}));
}

/// The two sums of backward hide under the weight gradients; those of forward have nothing to hide
/// under. Split rows hide all but the last scatter of backward anyway.
TEST(AsyncReduce, HidesTheSumsOfInputGradients) {
  const mesh::Shape tp2{.tp = 2};
  ASSERT_LT(activation, 2 * row_s * row_b * row_h * (row_heads + 2 * row_kv_heads) * row_d / 2);
  EXPECT_DOUBLE_EQ(exposed({}, tp2), 4 * activation);
  EXPECT_DOUBLE_EQ(exposed("async_reduce=on"_options, tp2), 2 * activation);
  EXPECT_DOUBLE_EQ(exposed(rows(), tp2) - exposed(rows("async_reduce=on"_options), tp2),
                   activation);
  const auto moved = [](const Options& options) {
    return sent(strong(row_request(2, 3, options), {.tp = 2}), OpKind::all_reduce, Axis::tp);
  };
  EXPECT_EQ(moved("async_reduce=on"_options), moved({}));
}

/// Extents that fp8 can multiply on 4 ranks of tp.
Request narrow_request(Precision precision, Options options) {
  return request_of("hidden=64 ffn=128 head_size=16 sequence=64", 2, std::move(options), precision);
}

/// Rows that arrive in parts are cast part by part, and rows that are there all at once are cast
/// together. A weight gradient is the sum over the parts of what was gathered.
TEST(Fp8Rows, AreCastAndMultipliedAsTheyArrive) {
  constexpr int t = 4, layers = 4, m = 2, linears = 4;
  // The parts in which a gathered tensor arrives, and in which a product leaves that is summed.
  for (const auto& [options, arriving, leaving] : {std::tuple{Options{}, 1, 1},
                                                   {"chunks=2"_options, 1, 2},
                                                   {rows(), 1, 1},
                                                   {rows("chunks=2"_options), 2, 2},
                                                   {rows("ring=on"_options), t, t}}) {
    SCOPED_TRACE(testing::PrintToString(options));
    const auto set = strong(narrow_request(Precision::fp8, options), {.tp = t});
    const program::RankProgram& program = set.of(0);
    int casts = 0, inputs = 0, gradients = 0, weight_gradients = 0;
    std::map<program::BufferId, program::BufferId> scale_of;  // of each cast copy
    for (const program::Op& op : program.step().ops) {
      if (const auto* const cast = std::get_if<program::Cast>(&op.payload)) {
        scale_of[cast->dst.slice.buffer] = cast->descale;
        scale_of[cast->transposed.slice.buffer] = cast->descale;
      }
      const bool of_weight = op.place.microbatch < 0;
      casts += program::kind_of(op.payload) == OpKind::cast && !of_weight ? 1 : 0;
      const auto* const gemm = std::get_if<program::Gemm>(&op.payload);
      if (gemm == nullptr || gemm->descale_a == program::no_buffer) continue;
      EXPECT_EQ(gemm->m % 16 + gemm->n % 16 + gemm->k % 16, 0U);
      EXPECT_EQ(gemm->descale_a, scale_of.at(gemm->a.slice.buffer));
      EXPECT_EQ(gemm->descale_b, scale_of.at(gemm->b.slice.buffer));
      const auto type = program.buffers[gemm->d.slice.buffer].dtype;
      if (type == program::DType::f32) {
        ++weight_gradients;
      } else {
        ++(op.place.phase == program::Phase::forward ? inputs : gradients);
      }
    }
    // Forward gathers X of the first GEMM of each pair, and backward dY of the second.
    EXPECT_EQ(casts, 2 * layers * m * linears / 2 * (arriving + 1));
    EXPECT_EQ(inputs, layers * m * linears / 2 * (arriving + leaving));
    EXPECT_EQ(gradients, layers * m * linears / 2 * (arriving + leaving));
    EXPECT_EQ(weight_gradients, layers * m * linears * arriving);
    const auto wide = strong(narrow_request(Precision::bf16, options), {.tp = t});
    EXPECT_EQ(flop_of(set), flop_of(wide));
    for (const OpKind kind : {OpKind::all_reduce, OpKind::reduce_scatter}) {
      EXPECT_EQ(sent(set, kind, Axis::tp), sent(wide, kind, Axis::tp));
    }
  }
}

TEST(Fp8Rows, CastAMovingWeightOnceAPass) {
  constexpr int layers = 4, m = 2, linears = 4;
  for (const Options& options :
       {rows(), rows("ring=on"_options), rows("chunks=2"_options), "chunks=2"_options}) {
    for (const auto& [key, value] : {std::pair{"zero", "3"}, std::pair{"offload", "weights"}}) {
      Request request = narrow_request(Precision::fp8, options);
      request.options[key] = value;
      const auto set = strong(request, {.tp = 2, .dp = 2});
      program::check(set);
      int weights = 0;
      for (const auto& [op, cast] : all_of<program::Cast>(set.of(0))) {
        // Activations are written in both forms.
        const bool is_one_form = (cast->dst.slice.buffer == program::no_buffer) !=
                                 (cast->transposed.slice.buffer == program::no_buffer);
        weights += is_one_form ? 1 : 0;
      }
      EXPECT_EQ(weights, layers * m / 2 * linears * 2) << key << testing::PrintToString(options);
    }
  }
}

TEST(Fp8Rows, HideWhatTheyHideInOtherTypes) {
  const auto exposes = [](Precision precision, const Options& options) {
    const auto set = strong(narrow_request(precision, options), {.tp = 4});
    return step_time(set) - flop_of(set);
  };
  for (const Precision precision : {Precision::bf16, Precision::fp8}) {
    EXPECT_LT(exposes(precision, rows("ring=on"_options)), 0.5 * exposes(precision, rows()));
    EXPECT_LT(exposes(precision, rows("chunks=4"_options)), 0.5 * exposes(precision, rows()));
    EXPECT_LT(exposes(precision, "chunks=4"_options), 0.5 * exposes(precision, {}));
  }
}

TEST(RowsRequire, NamesTheNumbersAndTheNearestThatWorks) {
  const mesh::Shape tp4{.tp = 4};
  const auto with = [](const Options& options) { return row_request(2, 4, options); };
  // In fp8 the rows of a part are a multiple of 16.
  const auto narrow = [](const Options& options) {
    Request request = narrow_request(Precision::fp8, options);
    request.model.sequence = 16;
    return request;
  };
  expect_refused({{with(rows("tp_output=gather"_options)), tp4, {"tp_output=reduce"}},
                  {with("chunks=2 tp_output=gather"_options), tp4, {"chunks=1"}},
                  {with("ring=on"_options), tp4, {"needs sequence_parallel=on"}},
                  {with(rows("ring=on chunks=2"_options)), tp4, {"ring=off"}},
                  // 64 positions over tp=4: 16, which 3 does not divide.
                  {with(rows("chunks=3"_options)), tp4, {"16 positions", "2 and 4"}},
                  {with("chunks=100"_options), tp4, {"128 rows", "64 and 128"}},
                  {with(rows()), {.tp = 4, .cp = 32}, {"tp=4", "cp=32", "nearest tp"}},
                  {with({}), {.cp = 3}, {"2 and 4"}},
                  {narrow(rows("ring=on"_options)), tp4, {"16 x 2 / 4 = 8", "ring=off"}},
                  {narrow(rows("chunks=4"_options)), tp4, {"16 x 2 / 4 = 8", "fewer chunks"}},
                  {narrow("chunks=4"_options), tp4, {"chunks = 16 x 2 / 4 = 8", "--dtype bf16"}},
                  {narrow("chunks=3"_options), tp4, {"32 rows", "2 and 4"}},
                  {narrow("chunks=2"_options), tp4, {}}});
}

TEST(RowsRequire, ALimitOfTheSequenceIsKnownToThePlan) {
  const Workload& hybrid = find_workload("hybrid");
  const auto strong = hybrid.limits(row_request(2, 4), Scaling::strong);
  EXPECT_TRUE(mesh::violation({.cp = 3}, strong).has_value());
  EXPECT_FALSE(mesh::violation({.cp = 4}, strong).has_value());
  Request odd = row_request(2, 4, rows());
  odd.model.sequence = 62;
  const auto weak = hybrid.limits(odd, Scaling::weak);
  EXPECT_TRUE(mesh::violation({.tp = 4}, weak).has_value());
  EXPECT_FALSE(mesh::violation({.tp = 2}, weak).has_value());
}

}  // namespace
}  // namespace isoscale::workloads
