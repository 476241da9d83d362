// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Elementwise work and recomputation: bytes, FLOP, memory and traffic are those of their formulas.

#include <fmt/format.h>

#include "stack_samples.hpp"

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

program::Facts facts_of(const Case& of) { return workloads::facts_of(build(of)); }

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
          const auto facts = facts_of({.gated = gated, .options = options, .mesh = {.tp = tp}});
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

TEST(Elementwise, AddsNoFlopAndNoTraffic) {
  for (const bool gated : {false, true}) {
    for (const char* output : {"reduce", "gather"}) {
      const auto with = [&](const char* elementwise) {
        return facts_of({.gated = gated,
                         .options = {{"elementwise", elementwise}, {"tp_output", output}},
                         .mesh = {.tp = 2}});
      };
      const program::Facts on = with("on"), off = with("off");
      EXPECT_EQ(on.flop.value(), off.flop.value());
      const auto moved = [](const program::Traffic& at) { return std::pair{at.bytes, at.calls}; };
      EXPECT_EQ(mapped(on.traffic, moved), mapped(off.traffic, moved));
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
      for (const program::Traffic& entry : facts_of(repeated).traffic) {
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

}  // namespace
}  // namespace isoscale::workloads
