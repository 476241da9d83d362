// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Rows over tp: bytes, FLOP, memory and overlap are those of their formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "program/check.hpp"
#include "program/match_table.hpp"
#include "simulate/simulate.hpp"
#include "tests/support/unit_costs.hpp"
#include "tests/unit/row_samples.hpp"

namespace isoscale::workloads {
namespace {

using mesh::Axis;
using program::OpKind;
using ::testing::HasSubstr;

constexpr double activation = row_s * row_b * row_h * row_element;  // bsh, in bytes

Options rows(Options more = {}) {
  more["sequence_parallel"] = "on";
  return more;
}

TEST(SequenceParallel, MovesWhatAllReducesMoveAndTheInputsOnceMore) {
  // numbers of arXiv 2205.05198: a layer's 4 all-reduces of bsh move 8 bsh (t-1)/t; 4 all-gathers
  // and 4 reduce-scatters move the same. Each of its two pairs gathers its input once more.
  constexpr int layers = 2, m = 3;
  for (const int t : {2, 4}) {
    const mesh::Shape mesh{.tp = t};
    const double share = layers * m * activation * (t - 1) / t;
    const program::ProgramSet plain = build_rows(row_request(layers, m), mesh);
    EXPECT_DOUBLE_EQ(sent(plain, Axis::tp, OpKind::all_reduce), 8 * share);
    for (const char* chunks : {"1", "2", "8"}) {
      const auto set = build_rows(row_request(layers, m, rows({{"chunks", chunks}})), mesh);
      EXPECT_DOUBLE_EQ(sent(set, Axis::tp, OpKind::all_gather), (4 + 2) * share) << chunks;
      EXPECT_DOUBLE_EQ(sent(set, Axis::tp, OpKind::reduce_scatter), 4 * share) << chunks;
      EXPECT_EQ(sent(set, Axis::tp, OpKind::all_reduce), 0);
      const auto cut = build_rows(row_request(layers, m, {{"chunks", chunks}}), mesh);
      EXPECT_DOUBLE_EQ(sent(cut, Axis::tp, OpKind::all_reduce), 8 * share) << chunks;
    }
    const auto ring = build_rows(row_request(layers, m, rows({{"ring", "on"}})), mesh);
    EXPECT_DOUBLE_EQ(sent(ring, Axis::tp, OpKind::exchange), (8 + 2) * share);
    EXPECT_EQ(sent(ring, Axis::tp, OpKind::all_gather), 0);
  }
}

TEST(SequenceParallel, VocabularyAddsTwoGathersAndAScatter) {
  constexpr int m = 2;
  const mesh::Shape mesh{.tp = 4};
  const auto bytes = [&](const char* vocabulary, OpKind kind) {
    return sent(build_rows(row_request(1, m, rows({{"vocabulary", vocabulary}})), mesh), Axis::tp,
                kind);
  };
  const double share = m * activation * 3 / 4;
  EXPECT_DOUBLE_EQ(bytes("on", OpKind::all_gather) - bytes("off", OpKind::all_gather), 2 * share);
  EXPECT_DOUBLE_EQ(bytes("on", OpKind::reduce_scatter) - bytes("off", OpKind::reduce_scatter),
                   share);
}

TEST(SequenceParallel, HandsOnAShareOfTheRows) {
  constexpr int m = 4;
  const mesh::Shape mesh{.tp = 4, .pp = 2};
  EXPECT_DOUBLE_EQ(sent(build_rows(row_request(2, m, rows()), mesh), Axis::pp, OpKind::exchange),
                   m * activation / 4);
  EXPECT_DOUBLE_EQ(sent(build_rows(row_request(2, m), mesh), Axis::pp, OpKind::exchange),
                   m * activation);
}

TEST(SequenceParallel, KeepsAShareOfEveryActivation) {
  // Per layer and microbatch: the inputs of the two pairs, QKV, scores, context, inner. Without
  // sequence parallelism the first two are whole on every rank. (The input of the model is of
  // another role, and takes the place of one of those; the output of the last layer is one more.)
  constexpr int layers = 3;
  constexpr double split = row_s * row_b * (row_heads + 2 * row_kv_heads) * row_d +
                           row_b * row_heads * row_s * row_s + row_s * row_b * row_heads * row_d +
                           row_s * row_b * row_ffn;
  for (const int t : {2, 4}) {
    const mesh::Shape mesh{.tp = t};
    const double plain = layers * (2 * activation + split * row_element / t);
    EXPECT_DOUBLE_EQ(peak_of(build_rows(row_request(layers, 1), mesh), program::Role::activation),
                     plain);
    for (const Options& options : {rows(), rows({{"chunks", "4"}}), rows({{"ring", "on"}})}) {
      EXPECT_DOUBLE_EQ(
          peak_of(build_rows(row_request(layers, 1, options), mesh), program::Role::activation),
          layers * (2 * activation + split * row_element) / t);
    }
  }
}

TEST(SequenceParallel, DoesTheSameFlop) {
  for (const Options& options : {rows(), rows({{"chunks", "4"}}), rows({{"ring", "on"}}),
                                 Options{{"chunks", "8"}}, rows({{"vocabulary", "on"}})}) {
    Options plain = options;
    for (const char* key : {"sequence_parallel", "chunks", "ring"}) plain.erase(key);
    const mesh::Shape mesh{.tp = 4};
    EXPECT_EQ(program::facts(build_rows(row_request(2, 3, options), mesh).of(0), mesh).flop.value(),
              program::facts(build_rows(row_request(2, 3, plain), mesh).of(0), mesh).flop.value());
  }
}

TEST(SequenceParallel, TakesOneProgramForAGroup) {
  const mesh::Shape mesh{.tp = 4, .pp = 2};
  for (const Options& options : {rows(), rows({{"chunks", "4"}}), rows({{"ring", "on"}})}) {
    EXPECT_EQ(build_rows(row_request(2, 3, options), mesh).programs.size(), 2U);
  }
}

/// The time of one step in which a GEMM takes a nanosecond for each FLOP and what tp moves one for
/// each byte that a rank sends or, folded, all that one after the other.
double step_time(const program::ProgramSet& set,
                 program::Folding folding = program::Folding::as_streamed) {
  program::OutlineSet outline = program::outline(set, program::Section::step);
  if (folding == program::Folding::folded) outline = simulate::folded(std::move(outline));
  simulate::Costs costs = simulate::unit_costs(outline);
  for (std::size_t t = 0; t < costs.tables.size(); ++t) {
    for (std::size_t i = 0; i < costs.tables[t].size(); ++i) {
      const program::OutlineOp& op = outline.outlines[t].ops[i];
      if (!program::communicates(op.kind)) continue;
      costs.tables[t][i] = units::Nanoseconds{static_cast<std::int64_t>(op.bytes)};
    }
  }
  const auto plays = simulate::simulate(outline, costs, {.plays = 1});
  std::int64_t end = 0;
  for (const auto& rank : plays[0].ranks) end = std::max(end, rank.end.value());
  return static_cast<double>(end);
}

double flop_of(const program::ProgramSet& set) {
  return program::facts(set.of(0), set.mesh).flop.value();
}

TEST(Chunks, ExposeOneChunkOfEachSumThatNothingElseHides) {
  // Of a layer's four all-reduces each exposes its last chunk, save that of the MLP's input
  // gradient, which has the weight gradient above it. A chunk travels in less time than the next
  // is multiplied in: the shortest GEMM is that of the projection, 2 (sb/n)(h/t) h.
  const mesh::Shape mesh{.tp = 2};
  for (const double n : {2.0, 4.0, 8.0}) {
    ASSERT_LE(activation / n, 2 * row_s * row_b / n * row_h / 2 * row_h);
    const auto set =
        build_rows(row_request(1, 1, {{"chunks", std::to_string(static_cast<int>(n))}}), mesh);
    EXPECT_DOUBLE_EQ(step_time(set), flop_of(set) + 3 * activation / n) << n;
    EXPECT_DOUBLE_EQ(step_time(set, program::Folding::folded), flop_of(set) + 4 * activation);
  }
  const auto whole = build_rows(row_request(1, 1), mesh);
  EXPECT_DOUBLE_EQ(step_time(whole), flop_of(whole) + 4 * activation);
}

TEST(Chunks, OfSplitRowsExposeTheFirstThatComesAndTheLastThatGoes) {
  // Forward each pair exposes its first gather and its last scatter. Backward the same for the
  // gradient; the input, gathered again, and the scatters of the MLP hide under GEMMs, the last
  // ones of the layer do not.
  const mesh::Shape mesh{.tp = 2};
  const auto time = [&](const char* n) {
    const auto set = build_rows(row_request(1, 1, rows({{"chunks", n}})), mesh);
    return step_time(set) - flop_of(set);
  };
  const double one = time("1"), four = time("4"), eight = time("8");
  EXPECT_LT(four, 0.5 * one);
  EXPECT_LT(eight, four);
}

TEST(Ring, HidesItsStepsUnderTheGemmsOfTheBlocksThatAreThere) {
  const mesh::Shape mesh{.tp = 4};
  const auto exposed = [&](const Options& options) {
    const auto set = build_rows(row_request(1, 1, options), mesh);
    return step_time(set) - flop_of(set);
  };
  EXPECT_LT(exposed(rows({{"ring", "on"}})), 0.5 * exposed(rows()));
}

TEST(RowsCheck, MeshesOf64RanksAreFreeOfDeadlockAndRaces) {
  constexpr std::array schedules{"1f1b", "zb-h1", "interleaved", "gpipe", "zb-h1"};
  std::size_t turn = 0;
  for (const mesh::Shape mesh :
       {mesh::Shape{.tp = 4, .dp = 4, .pp = 4}, mesh::Shape{.tp = 4, .cp = 2, .dp = 2, .pp = 4},
        mesh::Shape{.tp = 2, .cp = 8, .pp = 4}, mesh::Shape{.cp = 32, .dp = 2},
        mesh::Shape{.tp = 4, .cp = 16}}) {
    ASSERT_EQ(mesh.size(), 64);
    for (Options options : {rows(), rows({{"ring", "on"}, {"vocabulary", "on"}}), Options{},
                            Options{{"chunks", "2"}, {"overlap", "off"}}}) {
      options["schedule"] = schedules[turn++ % schedules.size()];
      const auto set = build_rows(row_request(2 * mesh.pp, 4 * mesh.dp, options), mesh);
      EXPECT_NO_THROW(program::check(set)) << mesh::to_string(mesh) << options["schedule"];
    }
  }
}

std::string refusal(const Request& base, const mesh::Shape& mesh) {
  try {
    (void)find_workload("hybrid").scale(base, mesh, Scaling::strong);
  } catch (const base::UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return {};
}

TEST(RowsRequire, NamesTheNumbersAndTheNearestThatWorks) {
  const mesh::Shape tp4{.tp = 4};
  EXPECT_THAT(refusal(row_request(2, 4, rows({{"tp_output", "gather"}})), tp4),
              HasSubstr("tp_output=reduce"));
  EXPECT_THAT(refusal(row_request(2, 4, {{"chunks", "2"}, {"tp_output", "gather"}}), tp4),
              HasSubstr("chunks=1"));
  EXPECT_THAT(refusal(row_request(2, 4, {{"ring", "on"}}), tp4),
              HasSubstr("needs sequence_parallel=on"));
  EXPECT_THAT(refusal(row_request(2, 4, rows({{"ring", "on"}, {"chunks", "2"}})), tp4),
              HasSubstr("ring=off"));
  // 64 positions over tp=4: 16, which 3 does not divide.
  EXPECT_THAT(refusal(row_request(2, 4, rows({{"chunks", "3"}})), tp4),
              AllOf(HasSubstr("16 positions"), HasSubstr("2 and 4")));
  EXPECT_THAT(refusal(row_request(2, 4, {{"chunks", "100"}}), tp4),
              AllOf(HasSubstr("128 rows"), HasSubstr("64 and 128")));
  EXPECT_THAT(refusal(row_request(2, 4, rows()), {.tp = 4, .cp = 32}),
              AllOf(HasSubstr("tp=4"), HasSubstr("cp=32"), HasSubstr("nearest tp")));
  EXPECT_THAT(refusal(row_request(2, 4), {.cp = 3}), HasSubstr("2 and 4"));
  Request narrow = row_request(2, 4, rows({{"ring", "on"}}));
  narrow.precision = Precision::fp8;
  narrow.model.hidden = narrow.model.ffn = 256;
  narrow.model.head_size = 16;
  EXPECT_THAT(refusal(narrow, tp4), HasSubstr("--dtype bf16"));
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
