// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Elementwise work and recomputation: bytes, FLOP, memory and traffic are those of their formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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
  return request_of({.hidden = 32,
                     .ffn = 48,
                     .kv_heads = gated ? 4 : 8,
                     .head_size = wide_head,
                     .layers = layers,
                     .sequence = sequence,
                     .vocabulary = 64,
                     .gated_mlp = gated},
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
        std::map<std::string_view, double> peak;
        for (const char* recompute : {"none", "selective", "full"}) {
          const program::Facts facts =
              facts_of({.gated = gated,
                        .options = {{"elementwise", elementwise}, {"recompute", recompute}},
                        .mesh = {.tp = tp}});
          peak[recompute] = peak_of(facts, program::Role::activation);
          EXPECT_EQ(peak[recompute],
                    4 * peak_activations({gated, static_cast<double>(tp)},
                                         std::string_view{elementwise} == "on", recompute))
              << elementwise << " " << recompute << " tp=" << tp << (gated ? " gated" : "");
        }
        EXPECT_LT(peak["selective"], peak["none"]);
        EXPECT_LT(peak["full"], peak["selective"]);
      }
    }
  }
}

TEST(Recompute, FullIsOneMoreForward) {
  // 96 B s l h^2 (1 + s / 6h + V / 16lh) against 72 B s l h^2 (1 + s / 6h + V / 12lh): arXiv
  // 2104.04473, for attention as wide as the hidden state and an MLP of four times that.
  for (const char* name : {"gpt-125m", "gpt-1.3b", "gpt-175b"}) {
    Model model = load_model(name);
    model.heads = model.kv_heads = model.hidden / model.head_size;
    model.ffn = 4 * model.hidden;
    model.layers = 4;
    const double B = 2 * 3, s = model.sequence, h = model.hidden, l = 4, V = model.vocabulary;
    const double linear = B * s * l * h * h, attention = s / (6 * h);
    const auto flop_with = [&](const char* recompute) {
      const Request request{.model = model,
                            .options = {{"microbatch", "2"},
                                        {"microbatches", "3"},
                                        {"vocabulary", "on"},
                                        {"elementwise", "on"},
                                        {"recompute", recompute}}};
      return workloads::facts_of(strong(request, {})).flop.value();
    };
    const double full = 96 * linear * (1 + attention + V / (16 * l * h));
    const double none = 72 * linear * (1 + attention + V / (12 * l * h));
    const double scores = 2 * B * s * s * h * l;  // one product of query and key
    EXPECT_NEAR(flop_with("full"), full, 1e-9 * full) << name;
    EXPECT_NEAR(flop_with("none"), none, 1e-9 * none) << name;
    EXPECT_NEAR(flop_with("selective"), none + scores, 1e-9 * none) << name;
  }
}

TEST(Recompute, IsPartOfBackward) {
  for (const bool gated : {false, true}) {
    for (const char* elementwise : {"off", "on"}) {
      const auto of_phase = [&](const char* recompute, Phase phase) {
        return facts_of({.gated = gated,
                         .options = {{"elementwise", elementwise}, {"recompute", recompute}}})
            .flop_of_phase[static_cast<std::size_t>(phase)]
            .value();
      };
      const double forward = of_phase("none", Phase::forward);
      const double backward = of_phase("none", Phase::backward);
      EXPECT_EQ(backward, 2 * forward);
      EXPECT_EQ(of_phase("full", Phase::forward), forward);
      EXPECT_EQ(of_phase("full", Phase::backward), backward + forward);
      EXPECT_EQ(of_phase("selective", Phase::forward), forward);
      EXPECT_GT(of_phase("selective", Phase::backward), backward);
    }
  }
}

TEST(Recompute, FullRepeatsForwardsCommunicationOverTp) {
  const auto reduced = [](const char* recompute, const char* output) {
    std::map<OpKind, std::uint64_t> calls;
    const Case of{.options = {{"recompute", recompute}, {"tp_output", output}},
                  .mesh = {.tp = 2},
                  .microbatches = 2};
    for (const program::Traffic& entry : facts_of(of).traffic) calls[entry.kind] += entry.calls;
    return calls;
  };
  constexpr std::uint64_t passes = layers * 2;
  EXPECT_EQ(reduced("none", "reduce").at(OpKind::all_reduce), 4 * passes);
  EXPECT_EQ(reduced("selective", "reduce").at(OpKind::all_reduce), 4 * passes);
  EXPECT_EQ(reduced("full", "reduce").at(OpKind::all_reduce), 6 * passes);
  EXPECT_EQ(reduced("none", "gather").at(OpKind::all_gather), 4 * passes);
  EXPECT_EQ(reduced("selective", "gather").at(OpKind::all_gather), 4 * passes);
  EXPECT_EQ(reduced("full", "gather").at(OpKind::all_gather), 8 * passes);
}

TEST(Elementwise, BytesAreThoseOfOneReadAndOneWrite) {
  for (const bool gated : {false, true}) {
    for (const int tp : {1, 2}) {
      const program::ProgramSet set =
          build({.gated = gated, .options = "elementwise=on"_options, .mesh = {.tp = tp}});
      std::map<OpKind, double> bytes = bytes_by_kind(set);
      const Sizes s{gated, static_cast<double>(tp)};
      constexpr double element = 4;
      EXPECT_EQ(bytes[OpKind::norm], layers * 2 * (2 * s.hidden + s.inverse) * element);
      // The gradient, what was normed, what bypassed it; the result.
      EXPECT_EQ(bytes[OpKind::norm_gradient], layers * 2 * (4 * s.hidden + s.inverse) * element);
      EXPECT_EQ(bytes[OpKind::softmax], layers * 2 * s.scores * element);
      EXPECT_EQ(bytes[OpKind::softmax_gradient], layers * 3 * s.scores * element);
      EXPECT_EQ(bytes[OpKind::activation], layers * (s.up + s.ffn) * element);
      // dy and what went in; its gradient.
      EXPECT_EQ(bytes[OpKind::activation_gradient], layers * (s.ffn + 2 * s.up) * element);
      EXPECT_FALSE(bytes.contains(OpKind::add));
      EXPECT_FALSE(bytes.contains(OpKind::copy));
    }
  }
}

TEST(Elementwise, NormsOfSplitRowsAreThoseOfARank) {
  const program::ProgramSet set =
      build({.options = "elementwise=on sequence_parallel=on"_options, .mesh = {.tp = 4}});
  std::map<OpKind, double> bytes = bytes_by_kind(set);
  const Sizes s{false, 4};
  EXPECT_EQ(bytes[OpKind::norm],
            layers * 2 * (2 * s.hidden + s.inverse));  // 4 bytes, of a quarter of the rows
  EXPECT_EQ(bytes[OpKind::norm_gradient], layers * 2 * (4 * s.hidden + s.inverse));
}

TEST(Recompute, OfScoresSendsKeysRoundTheRingOnceMore) {
  const auto exchanges = [](const char* recompute) {
    std::uint64_t calls = 0;
    const Case of{.options = {{"elementwise", "on"}, {"recompute", recompute}}, .mesh = {.cp = 4}};
    for (const program::Traffic& entry : facts_of(of).traffic) {
      if (entry.kind == OpKind::exchange) calls += entry.calls;
    }
    return calls;
  };
  // Keys and values forward; both again backward, and their gradients.
  constexpr std::uint64_t round = layers * (4 - 1);
  EXPECT_EQ(exchanges("none"), 6 * round);
  EXPECT_EQ(exchanges("selective"), 7 * round);
  EXPECT_EQ(exchanges("full"), 8 * round);
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
      ASSERT_EQ(on.traffic.size(), off.traffic.size());
      for (std::size_t i = 0; i < on.traffic.size(); ++i) {
        EXPECT_EQ(on.traffic[i].bytes.value(), off.traffic[i].bytes.value());
        EXPECT_EQ(on.traffic[i].calls, off.traffic[i].calls);
      }
    }
  }
}

TEST(Elementwise, OffIsTheStackWithoutIt) {
  for (const bool gated : {false, true}) {
    const program::ProgramSet plain = build({.gated = gated}),
                              off = build({.gated = gated,
                                           .options = "elementwise=off recompute=none"_options});
    EXPECT_EQ(plain.of(0).step().ops.size(), off.of(0).step().ops.size());
    for (const program::OutlineOp& op :
         program::outline(plain.of(0), program::Section::step, {}).ops) {
      EXPECT_FALSE(op.kind >= OpKind::norm && op.kind <= OpKind::softmax_gradient);
    }
  }
}

TEST(Recompute, OfFp8KeepsCastsOnlyWhereForwardIsNotRepeated) {
  // Full: a layer's casts are made twice, and the first time for the product alone.
  const auto transposed = [](const char* recompute) {
    const Options options{{"elementwise", "on"}, {"recompute", recompute}};
    const auto set = strong(request(true, 1, options, Precision::fp8, 16), {});
    std::map<Phase, std::pair<int, int>> casts;  // all, with a transposed copy
    for (const program::Op& op : set.of(0).step().ops) {
      const auto* cast = std::get_if<program::Cast>(&op.payload);
      if (cast == nullptr || op.place.microbatch < 0) continue;
      ++casts[op.place.phase].first;
      if (cast->transposed.slice.buffer != program::no_buffer) ++casts[op.place.phase].second;
    }
    return casts;
  };
  using Counts = std::pair<int, int>;
  auto none = transposed("none"), selective = transposed("selective"), full = transposed("full");
  EXPECT_EQ(none[Phase::forward], Counts(4 * layers, 4 * layers));
  EXPECT_EQ(none[Phase::backward], Counts(4 * layers, 4 * layers));  // of gradients
  EXPECT_EQ(selective[Phase::forward], Counts(4 * layers, 3 * layers));
  EXPECT_EQ(selective[Phase::backward], Counts(5 * layers, 5 * layers));
  EXPECT_EQ(full[Phase::forward], Counts(4 * layers, 0));
  EXPECT_EQ(full[Phase::backward], Counts(8 * layers, 8 * layers));
}

}  // namespace
}  // namespace isoscale::workloads
