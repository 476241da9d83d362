// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Elementwise work and recomputation, and tiles of images: bytes, FLOP, memory and traffic are
// those of their formulas.

#include "program/check_races_and_matching.hpp"
#include "stack_samples.hpp"
#include "tests/support/unit_costs.hpp"

namespace isoscale::workloads {
namespace {

using program::OpKind;
using program::Phase;

constexpr int layers = 3, heads = 8, head_size = 4, sequence = 16, microbatch = 2;

struct Case {
  bool gated = false;
  Options options{};
  mesh::Shape mesh{};
  int microbatches = 1;
};

Request request(bool gated, int microbatches, const Options& options,
                Precision precision = Precision::f32, int wide_head = head_size) {
  return request_of(
      fmt::format("hidden=32 ffn=48 layers={} sequence={} vocabulary=64 head_size={} {}", layers,
                  sequence, wide_head, gated ? "kv_heads=4 gated=1" : ""),
      microbatches, options, precision);
}

program::ProgramSet build(const Case& of) {
  return strong(request(of.gated, of.microbatches, of.options), of.mesh);
}

/// Elements of what a layer has, on a rank of so many that share it; T tokens.
struct Sizes {
  Sizes(bool gated, double tp) {
    const double tokens = sequence * microbatch, kv = gated ? 4 : 8;
    hidden = tokens * 32;
    qkv = tokens * (heads + 2 * kv) * head_size / tp;
    scores = microbatch * heads / tp * sequence * sequence;
    context = tokens * heads * head_size / tp;
    ffn = tokens * 48 / tp;
    up = gated ? 2 * ffn : ffn;
    inverse = tokens;
  }
  double hidden, qkv, scores, context, ffn, up, inverse;
};

std::map<OpKind, double> bytes_by_kind(const program::ProgramSet& set) {
  std::map<OpKind, double> bytes;
  for (const program::OutlineOp& op :
       program::outline(set.of(0), program::Section::step, set.mesh).ops) {
    bytes[op.kind] += static_cast<double>(op.bytes);
    EXPECT_EQ(op.flop > 0, op.kind == OpKind::gemm);
  }
  return bytes;
}

/// Peak elements of one stage's activations, of f32, with one microbatch. The input of the first
/// layer is none, the output of the last is one: as many as layers.
double peak_activations(const Sizes& s, bool elementwise, std::string_view recompute) {
  const double norms = elementwise ? 2 * (s.hidden + s.inverse) : 0;
  // A layer keeps beside its input: X + attention + MLP + what is normed.
  const double everything =
      s.qkv + s.scores + s.context + s.hidden + s.ffn + (elementwise ? s.up : 0) + norms;
  const double inputs = layers * s.hidden;
  if (recompute == "none") return inputs + layers * everything;
  if (recompute == "full") return inputs + everything;  // of one layer at a time
  const double kept = everything - s.scores - (elementwise ? s.ffn : 0);
  const double all = inputs + layers * kept;
  // The last layer's MLP is done with when its scores are computed again.
  const double of_mlp = elementwise ? s.up + s.hidden + s.inverse : s.ffn;
  const double with_scores = all - s.hidden - of_mlp - s.hidden - s.context + s.scores;
  const double with_inner = all + (elementwise ? s.ffn : 0);
  return std::max(with_inner, with_scores);
}

TEST(Recompute, PeakOfActivationsIsItsFormula) {
  for (const bool gated : {false, true}) {
    for (const int tp : {1, 2}) {
      for (const char* elementwise : {"off", "on"}) {
        std::vector<double> peaks;
        for (const char* recompute : {"none", "selective", "full"}) {
          const Options options{{"elementwise", elementwise}, {"recompute", recompute}};
          const auto facts =
              facts_of(build({.gated = gated, .options = options, .mesh = {.tp = tp}}));
          const Sizes sizes{gated, static_cast<double>(tp)};
          peaks.push_back(peak_of(facts, program::Role::activation));
          EXPECT_EQ(peaks.back(),
                    4 * peak_activations(sizes, elementwise == std::string{"on"}, recompute))
              << testing::PrintToString(options) << " tp=" << tp << (gated ? " gated" : "");
        }
        EXPECT_GT(peaks[0], peaks[1]);
        EXPECT_GT(peaks[1], peaks[2]);
      }
    }
  }
}

/// 96 B s l h^2 (1 + s / 6h + V / 16lh) against 72 B s l h^2 (1 + s / 6h + V / 12lh): arXiv
/// 2104.04473, for attention as wide as the hidden state and an MLP of four times that.
TEST(Recompute, FullIsOneMoreForward) {
  for (const char* name : {"gpt-125m", "gpt-1.3b", "gpt-6.7b", "gpt-175b"}) {
    SCOPED_TRACE(name);
    Model model = load_model(name);
    model.heads = model.kv_heads = model.hidden / model.head_size;
    model.ffn = 4 * model.hidden;
    model.layers = 4;
    const double B = 2 * 3, s = model.sequence, h = model.hidden, l = 4, V = model.vocabulary;
    const double linear = B * s * l * h * h, attention = s / (6 * h);
    const auto flop_with = [&](const char* recompute, const char* others = "on") {
      Options options = "microbatch=2 microbatches=3"_options;
      options["recompute"] = recompute;
      options["vocabulary"] = options["elementwise"] = others;
      return flop_of(strong({.model = model, .options = options}, {}));
    };
    const double full = 96 * linear * (1 + attention + V / (16 * l * h));
    const double none = 72 * linear * (1 + attention + V / (12 * l * h));
    const double scores = 2 * B * s * s * h * l;  // one product of query and key
    EXPECT_NEAR(flop_with("full"), full, 1e-9 * full);
    EXPECT_NEAR(flop_with("none"), none, 1e-9 * none);
    EXPECT_NEAR(flop_with("none", "off"), 72 * linear * (1 + attention), 1e-9 * none);
    EXPECT_NEAR(flop_with("selective"), none + scores, 1e-9 * none);
  }
}

TEST(Recompute, IsPartOfBackward) {
  for (const bool gated : {false, true}) {
    for (const char* elementwise : {"off", "on"}) {
      const auto flop = [&](const char* recompute) {
        const Options options{{"elementwise", elementwise}, {"recompute", recompute}};
        const program::ProgramSet set = build({.gated = gated, .options = options});
        return std::pair{flop_in(set, Phase::forward), flop_in(set, Phase::backward)};
      };
      const auto [forward, backward] = flop("none");
      EXPECT_EQ(backward, 2 * forward);
      EXPECT_EQ(flop("full"), std::pair(forward, backward + forward));
      EXPECT_EQ(flop("selective").first, forward);
      EXPECT_GT(flop("selective").second, backward);
    }
  }
}

/// The gradient of a norm reads the gradient, what was normed and what bypassed it, and writes one;
/// that of an activation reads its dy and what went in, and writes its gradient.
TEST(Elementwise, BytesAreThoseOfOneReadAndOneWrite) {
  for (const bool gated : {false, true}) {
    for (const int tp : {1, 2}) {
      std::map<OpKind, double> bytes = bytes_by_kind(
          build({.gated = gated, .options = "elementwise=on"_options, .mesh = {.tp = tp}}));
      const Sizes s{gated, static_cast<double>(tp)};
      constexpr double all = layers * 4;  // of f32
      EXPECT_EQ(bytes[OpKind::norm], all * 2 * (2 * s.hidden + s.inverse));
      EXPECT_EQ(bytes[OpKind::norm_gradient], all * 2 * (4 * s.hidden + s.inverse));
      EXPECT_EQ(bytes[OpKind::softmax], all * 2 * s.scores);
      EXPECT_EQ(bytes[OpKind::softmax_gradient], all * 3 * s.scores);
      EXPECT_EQ(bytes[OpKind::activation], all * (s.up + s.ffn));
      EXPECT_EQ(bytes[OpKind::activation_gradient], all * (s.ffn + 2 * s.up));
      EXPECT_FALSE(bytes.contains(OpKind::add));
      EXPECT_FALSE(bytes.contains(OpKind::copy));
    }
  }
}

TEST(Elementwise, NormsOfSplitRowsAreThoseOfARank) {
  std::map<OpKind, double> bytes = bytes_by_kind(
      build({.options = "elementwise=on sequence_parallel=on"_options, .mesh = {.tp = 4}}));
  const Sizes s{false, 4};  // 4 bytes, of a quarter of the rows
  EXPECT_EQ(bytes[OpKind::norm], layers * 2 * (2 * s.hidden + s.inverse));
  EXPECT_EQ(bytes[OpKind::norm_gradient], layers * 2 * (4 * s.hidden + s.inverse));
}

/// With three layers, tp reduces or gathers 4 times a pass of each of two microbatches; cp sends
/// keys and values round the ring forward, both again backward, and their gradients.
TEST(Recompute, RepeatsForwardsCommunication) {
  const auto calls = [](const Case& of, OpKind kind) {
    std::vector<std::uint64_t> result;
    for (const char* recompute : {"none", "selective", "full"}) {
      Case repeated = of;
      repeated.options["recompute"] = recompute;
      std::uint64_t sum = 0;
      for (const program::Traffic& entry : facts_of(build(repeated)).traffic) {
        if (entry.kind == kind) sum += entry.calls;
      }
      result.push_back(sum);
    }
    return result;
  };
  const Case reduced{.mesh = {.tp = 2}, .microbatches = 2};
  const Case gathered{.options = "tp_output=gather"_options, .mesh = {.tp = 2}, .microbatches = 2};
  const Case ring{.options = "elementwise=on"_options, .mesh = {.cp = 4}};
  constexpr std::uint64_t passes = layers * 2, round = layers * (4 - 1);
  EXPECT_THAT(calls(reduced, OpKind::all_reduce), ElementsAre(4 * passes, 4 * passes, 6 * passes));
  EXPECT_THAT(calls(gathered, OpKind::all_gather), ElementsAre(4 * passes, 4 * passes, 8 * passes));
  EXPECT_THAT(calls(ring, OpKind::exchange), ElementsAre(6 * round, 7 * round, 8 * round));
}

/// Full: a layer's casts are made twice, and the first time for the product alone.
TEST(Recompute, OfFp8KeepsCastsOnlyWhereForwardIsNotRepeated) {
  using Casts = std::map<Phase, std::pair<int, int>>;  // all in layers, with a transposed copy
  const auto casts = [](const char* recompute) {
    const Options options{{"elementwise", "on"}, {"recompute", recompute}};
    const auto set = strong(request(true, 1, options, Precision::fp8, 16), {});
    Casts found;
    for (const auto& [op, cast] : all_of<program::Cast>(set.of(0))) {
      if (op->place.microbatch < 0) continue;
      ++found[op->place.phase].first;
      if (cast->transposed.slice.buffer != program::no_buffer) ++found[op->place.phase].second;
    }
    return found;
  };
  constexpr int l = layers;
  const auto expected = [](std::pair<int, int> forward, std::pair<int, int> backward) {
    return Casts{{Phase::forward, forward}, {Phase::backward, backward}};
  };
  EXPECT_EQ(casts("none"), expected({4 * l, 4 * l}, {4 * l, 4 * l}));  // of gradients
  EXPECT_EQ(casts("selective"), expected({4 * l, 3 * l}, {5 * l, 5 * l}));
  EXPECT_EQ(casts("full"), expected({4 * l, 0}, {8 * l, 8 * l}));
}

const Workload& tiles() { return find_workload("tiles"); }

/// 16 x 24 pixels, 4 channels, 3 layers, 4 samples.
Request tiled(Options options = {}, Precision precision = Precision::f32) {
  options.merge("image=16x24 channels=4 layers=3 batch=4 bucket=1000"_options);
  return {.precision = precision, .options = std::move(options)};
}

program::ProgramSet built(const Request& base, const mesh::Shape& mesh,
                          Scaling scaling = Scaling::strong) {
  return tiles().build(tiles().scale(base, mesh, scaling));
}

/// Numbers of one rank of `tiled`, from its grid alone.
struct Expected {
  Expected(const mesh::Shape& mesh, std::uint64_t window)
      : h(16U / static_cast<unsigned>(mesh.cp)),
        w(24U / static_cast<unsigned>(mesh.tp)),
        b(4U / static_cast<unsigned>(mesh.dp)),
        k(window),
        p((window - 1) / 2) {}
  std::uint64_t h, w, b, k, p, c = 4, layers = 3, bytes = 4;

  /// Forward through every layer, backward through all but the first.
  [[nodiscard]] std::uint64_t passes() const { return 2 * layers - 1; }
  [[nodiscard]] std::uint64_t rows_of_one_side() const { return passes() * p * w * b * c * bytes; }
  [[nodiscard]] std::uint64_t columns_of_one_side() const {
    return passes() * p * (h + 2 * p) * b * c * bytes;
  }
  [[nodiscard]] std::uint64_t kernels() const { return layers * k * k * c * c * bytes; }
  [[nodiscard]] std::uint64_t padded() const { return (h + 2 * p) * (w + 2 * p) * b * c * bytes; }
};

TEST(Tiles, HaloBytesFollowTheTilesSides) {
  for (const mesh::Shape mesh :
       {"tp=2,cp=2"_mesh, "tp=4,cp=2"_mesh, "tp=2,cp=1,dp=2"_mesh, "cp=4"_mesh}) {
    for (const std::uint64_t kernel : {3U, 5U}) {
      SCOPED_TRACE(mesh::to_string(mesh));
      const Expected expected{mesh, kernel};
      const program::ProgramSet set = built(tiled({{"kernel", std::to_string(kernel)}}), mesh);
      ASSERT_EQ(set.programs.size(), 1U);
      EXPECT_EQ(sent_in(facts_of(set), program::OpKind::exchange, mesh::Axis::cp),
                mesh.cp > 1 ? 2 * expected.rows_of_one_side() : 0);
      EXPECT_EQ(sent_in(facts_of(set), program::OpKind::exchange, mesh::Axis::tp),
                mesh.tp > 1 ? 2 * expected.columns_of_one_side() : 0);
    }
  }
}

TEST(Tiles, FixedBoundariesSendNothingAcrossThem) {
  const mesh::Shape mesh{.tp = 4, .cp = 4};
  const Expected expected{mesh, 3};
  const program::ProgramSet set = built(tiled("boundary=fixed"_options), mesh);
  EXPECT_EQ(set.programs.size(), 9U);  // corners, edges, inside
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const program::Facts facts = facts_of(set, rank);
    const int column = rank % 4, row = rank / 4;  // tp varies fastest
    const auto sides = [](int at) { return at == 0 || at == 3 ? 1U : 2U; };
    EXPECT_EQ(sent_in(facts, program::OpKind::exchange, mesh::Axis::cp),
              sides(row) * expected.rows_of_one_side());
    EXPECT_EQ(sent_in(facts, program::OpKind::exchange, mesh::Axis::tp),
              sides(column) * expected.columns_of_one_side());
  }
}

TEST(Tiles, EveryGradientIsReducedOnceOverAllRanks) {
  for (const char* overlap : {"on", "off"}) {
    const mesh::Shape mesh{.tp = 2, .cp = 2, .dp = 2};
    const program::Facts facts = facts_of(built(tiled({{"overlap", overlap}}), mesh));
    const mesh::AxisSet all{mesh::Axis::tp, mesh::Axis::cp, mesh::Axis::dp};
    // A ring all-reduce over n ranks: 2 (n - 1) / n of the bytes.
    EXPECT_EQ(sent_in(facts, program::OpKind::all_reduce, all),
              2 * 7 * Expected(mesh, 3).kernels() / 8);
    const auto all_reduce =
        std::ranges::find(facts.traffic, program::OpKind::all_reduce, &program::Traffic::kind);
    EXPECT_EQ(all_reduce->calls, 2U);  // 576 bytes a layer: two fill a bucket of 1000
  }
}

TEST(Tiles, FlopIsThatOfTheConvolutionsAndOfTheZerosBetweenRows) {
  for (const Options& options :
       combinations({{"overlap", {"on", "off"}}, {"kernel", {"3", "5"}}})) {
    for (const mesh::Shape mesh : {""_mesh, "tp=2,cp=2"_mesh, "tp=3,cp=2,dp=2"_mesh}) {
      SCOPED_TRACE(testing::PrintToString(options) + mesh::to_string(mesh));
      const Expected e{mesh, std::stoul(options.at("kernel"))};
      const program::ProgramSet set = built(tiled(options), mesh);
      const std::uint64_t of_a_pixel = 2 * e.k * e.k * e.c * e.c, pixels = e.h * e.w * e.b;
      const std::uint64_t with_zeros = ((e.h - 1) * (e.w + 2 * e.p) + e.w) * e.b;
      EXPECT_EQ(flop_of(set),
                static_cast<double>(of_a_pixel * (e.passes() * pixels + e.layers * with_zeros)));
      EXPECT_EQ(flop_in(set, program::Phase::forward),
                static_cast<double>(of_a_pixel * e.layers * pixels));
    }
  }
}

TEST(Tiles, MemoryIsOneTileALayerWithItsHalo) {
  const mesh::Shape mesh{.tp = 2, .cp = 2};
  for (const char* kernel : {"3", "5"}) {
    const Expected e{mesh, kernel[0] == '3' ? 3U : 5U};
    const program::ProgramSet set = built(tiled({{"kernel", kernel}, {"optimizer", "adam"}}), mesh);
    const program::Facts facts = facts_of(set);
    const auto peak = [&](program::Role role) { return peak_of(facts, role); };
    EXPECT_EQ(peak(program::Role::input), e.padded());
    EXPECT_EQ(peak(program::Role::activation), e.layers * e.padded());
    EXPECT_EQ(peak(program::Role::weight), e.kernels());
    EXPECT_EQ(peak(program::Role::gradient), e.kernels());
    // Two columns that leave, two that come.
    EXPECT_EQ(peak(program::Role::workspace), 4 * e.columns_of_one_side() / e.passes());
    const std::uint64_t buckets = kernel[0] == '3' ? 2 : 3;
    EXPECT_EQ(peak(program::Role::optimizer), 2 * e.kernels() + buckets * 2 * e.bytes);
    EXPECT_GE(set.of(0).arena_bytes[0], facts.peak_live[0].value());
  }
}

TEST(Tiles, NarrowTypesAddTapsInAWideTile) {
  const mesh::Shape mesh{.tp = 2, .cp = 2};
  const program::ProgramSet set = built(tiled("overlap=off"_options, Precision::bf16), mesh);
  const Expected e{mesh, 3};
  const program::Facts facts = facts_of(set);
  const auto peak = [&](program::Role role) { return peak_of(facts, role); };
  EXPECT_EQ(peak(program::Role::activation), e.layers * e.padded() / 2);
  EXPECT_EQ(peak(program::Role::weight), e.kernels() / 2);
  EXPECT_EQ(peak(program::Role::master), e.kernels());
  EXPECT_EQ(peak(program::Role::gradient), e.kernels());
  EXPECT_EQ(peak(program::Role::workspace), e.h * e.w * e.b * e.c * 4);  // the tile in f32
  EXPECT_EQ(sent_in(facts, program::OpKind::exchange, mesh::Axis::cp), e.rows_of_one_side());
  std::uint64_t roundings = 0;
  for (const auto& [op, cast] : all_of<program::Cast>(set.of(0))) {
    roundings += set.of(0).buffers[cast->dst.slice.buffer].dtype == program::DType::bf16 ? 1 : 0;
  }
  EXPECT_EQ(roundings, e.passes());  // one a layer, not one a tap
}

TEST(Tiles, NaturalGridsAreTheMostSquare) {
  std::vector<std::pair<int, int>> grids;
  for (const int ranks : {1, 2, 7, 8, 12, 64}) {
    mesh::Request request = tiles().natural_mesh(ranks);
    grids.emplace_back(request[mesh::Axis::cp], request[mesh::Axis::tp]);
  }
  EXPECT_THAT(grids,
              ElementsAre(Pair(1, 1), Pair(2, 1), Pair(7, 1), Pair(4, 2), Pair(4, 3), Pair(8, 8)));
}

TEST(Tiles, OverlapPutsEveryHaloUnderProducts) {
  for (const mesh::Shape mesh : {"tp=2,cp=2"_mesh, "cp=4"_mesh, "tp=3"_mesh}) {
    for (const char* boundary : {"periodic", "fixed"}) {
      SCOPED_TRACE(mesh::to_string(mesh) + " " + boundary);
      const Options options{{"boundary", boundary}, {"kernel", "5"}, {"image", "32x48"}};
      const program::OutlineSet outline =
          program::outline(built(tiled(options), mesh), program::Section::step);
      simulate::Costs costs = simulate::unit_costs(outline);  // and all but products one unit
      for (auto& table : costs.tables) {
        for (units::Nanoseconds& cost : table) cost = std::max(cost, units::Nanoseconds{1});
      }
      const auto plays = simulate::simulate(outline, costs);
      int exchanges = 0;
      for (int rank = 0; rank < mesh.size(); ++rank) {
        const auto kind = [&](const timeline::Span& span) {
          return outline.of(rank).ops[span.op].kind;
        };
        const auto& spans = plays[0].ranks[static_cast<std::size_t>(rank)].spans;
        for (const timeline::Span& message : spans) {
          if (kind(message) != program::OpKind::exchange) continue;
          ++exchanges;
          const auto hides = [&](const timeline::Span& other) {
            return kind(other) == program::OpKind::gemm && other.start < message.end &&
                   message.start < other.end;
          };
          EXPECT_TRUE(std::ranges::any_of(spans, hides)) << "rank " << rank << " op " << message.op;
        }
      }
      const int phases = (mesh.cp > 1 ? 1 : 0) + (mesh.tp > 1 ? 1 : 0);
      EXPECT_EQ(exchanges, mesh.size() * phases * 5);
    }
  }
}

TEST(Tiles, NoGridDeadlocksOrRaces) {
  const std::vector<mesh::Shape> meshes{
      ""_mesh,          "tp=2"_mesh,  "cp=2"_mesh,  "tp=2,cp=2"_mesh,       "tp=3,cp=2"_mesh,
      "tp=8,cp=8"_mesh, "tp=64"_mesh, "cp=64"_mesh, "tp=2,cp=16,dp=2"_mesh, "tp=4,cp=4,dp=4"_mesh,
      "cp=2,dp=32"_mesh};
  for (const Options& options : combinations({{"image", {"128x192", "1920x1280"}},
                                              {"boundary", {"periodic", "fixed"}},
                                              {"overlap", {"on", "off"}},
                                              {"kernel", {"3", "5"}},
                                              {"batch", {"32"}}})) {
    for (const mesh::Shape& mesh : meshes) {
      EXPECT_NO_THROW(program::check(built(tiled(options), mesh)))
          << mesh::to_string(mesh) << testing::PrintToString(options);
    }
  }
}

TEST(Tiles, RefusalsGiveTheNumbersAndWhatWorks) {
  const std::vector<RefusedOn> cases{
      {tiled("kernel=5 image=8x32"_options),
       {.cp = 8},
       {"8 rows over cp=8", "kernel=5 reaches 2", "cp=4, or", "16 rows or more"}},
      {tiled("kernel=5 image=1"_options), {}, {"1 rows over cp=1", "2 rows or more"}},
      {tiled("batch=6"_options), {.dp = 4}, {"batch=6", "4 and 8"}},
      {tiled("image=100000"_options), {}, {"100000 x 100000", "more tiles"}},
      {tiled({}, Precision::fp8), {}, {"fp8"}}};
  for (const auto& [base, mesh, words] : cases) {
    testing_support::expect_words(
        testing_support::refusal([&] { (void)tiles().scale(base, mesh, Scaling::strong); }), words);
  }
  for (const char* image : {"0", "x", "12x", "x12", "12x13x14", "-3", "1000001", "64 "}) {
    EXPECT_THROW((void)tiles().limits(tiled({{"image", image}}), Scaling::strong), base::UsageError)
        << image;
  }
  const auto limits = tiles().limits(tiled(), Scaling::strong);
  EXPECT_TRUE(mesh::violation({.tp = 5}, limits).has_value());
  EXPECT_TRUE(mesh::violation({.cp = 3}, limits).has_value());
  EXPECT_FALSE(mesh::violation({.tp = 3, .cp = 16}, limits).has_value());
  EXPECT_TRUE(tiles().limits(tiled(), Scaling::weak).empty());
}

TEST(Tiles, TwinsAreSmallAndKeepTheGridAndTheBuckets) {
  for (const Scaling scaling : {Scaling::strong, Scaling::weak}) {
    // 147456 bytes a layer: 4 of them, 3 buckets.
    const Request base = tiled("image=4096 channels=64 layers=12 bucket=500kB"_options);
    const mesh::Shape mesh{.tp = 2, .cp = 4, .dp = 2};
    const Request twin = tiles().twin(tiles().scale(base, mesh, scaling));
    EXPECT_EQ(twin.mesh, mesh);
    const program::ProgramSet set = tiles().build(twin);
    program::check(set);
    EXPECT_LT(set.of(0).arena_bytes[0], 1U << 20);
    const int reductions = count_ops(set.of(0), [](const program::Op& op) {
      return op.place.phase == program::Phase::gradient_reduction;
    });
    EXPECT_EQ(reductions, 2);  // four layers, two in each bucket
    EXPECT_FALSE(set.of(0).observables.empty());
  }
}

}  // namespace
}  // namespace isoscale::workloads
