// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The sequence over cp: bytes, FLOP, memory and overlap are those of their formulas.
#include <gtest/gtest.h>

#include "program/check.hpp"
#include "simulate/simulate.hpp"
#include "tests/support/unit_costs.hpp"
#include "tests/unit/row_samples.hpp"

namespace isoscale::workloads {
namespace {

using mesh::Axis;
using program::OpKind;

/// Of layer forward and backward, 2 FLOP a multiply-add: 3 passes over the weights, and scores and
/// context forward, twice that backward.
double layer_flop(double local, double sequence) {
  const double weights = row_h * (row_heads + 2 * row_kv_heads) * row_d +
                         row_heads * row_d * row_h + 2 * row_h * row_ffn;
  return 3 * 2 * row_b * local * (weights + 2 * sequence * row_heads * row_d);
}

TEST(ContextParallel, MovesBlocksOfKeysAndValues) {
  // Forward cp - 1 blocks of keys and as many of values; backward these again and their gradients.
  constexpr int layers = 2, m = 3;
  for (const int cp : {2, 4, 8}) {
    const auto set = build_rows(row_request(layers, m), {.cp = cp});
    const double block = row_s / cp * row_b * row_kv_heads * row_d * row_element;
    EXPECT_DOUBLE_EQ(sent(set, Axis::cp, OpKind::exchange),
                     layers * m * (2 + 4) * (cp - 1) * block);
    double forward = 0;
    const auto outline = program::outline(set.of(0), program::Section::step, set.mesh);
    for (const program::OutlineOp& op : outline.ops) {
      if (op.kind == OpKind::exchange && op.place.phase == program::Phase::forward) {
        forward += static_cast<double>(op.bytes);
      }
    }
    EXPECT_DOUBLE_EQ(forward, layers * m * 2 * (cp - 1) * block);
  }
}

TEST(ContextParallel, ReducesEveryGradientOverCpAndDp) {
  constexpr int layers = 2;
  constexpr double weights = layers * (row_h * (row_heads + 2 * row_kv_heads) * row_d +
                                       row_heads * row_d * row_h + 2 * row_h * row_ffn);
  for (const mesh::Shape mesh : {mesh::Shape{.cp = 4}, mesh::Shape{.cp = 2, .dp = 2}}) {
    const auto set = build_rows(row_request(layers, 4), mesh);
    double bytes = 0;
    for (const program::Traffic& entry : program::facts(set.of(0), mesh).traffic) {
      if (entry.kind == OpKind::all_reduce) {
        EXPECT_EQ(mesh::group_size(mesh, entry.axes), 4);
        bytes += static_cast<double>(entry.bytes.value());
      }
    }
    EXPECT_DOUBLE_EQ(bytes, weights * row_element);
  }
}

TEST(ContextParallel, SplitsTheFlopOfTheWholeSequence) {
  constexpr int layers = 2, m = 3;
  for (const int cp : {1, 2, 4, 8}) {
    const mesh::Shape mesh{.cp = cp};
    EXPECT_DOUBLE_EQ(
        program::facts(build_rows(row_request(layers, m), mesh).of(0), mesh).flop.value(),
        layers * m * layer_flop(row_s / cp, row_s));
  }
}

TEST(ContextParallel, KeepsAShareOfEveryActivation) {
  constexpr int layers = 3;
  constexpr double rows = row_s * row_b;
  constexpr double whole = 2 * rows * row_h + rows * (row_heads + 2 * row_kv_heads) * row_d +
                           row_b * row_heads * row_s * row_s + rows * row_heads * row_d +
                           rows * row_ffn;
  for (const int cp : {1, 2, 8}) {
    EXPECT_DOUBLE_EQ(
        peak_of(build_rows(row_request(layers, 1), {.cp = cp}), program::Role::activation),
        layers * whole * row_element / cp);
  }
}

TEST(ContextParallel, OneProgramServesTheRing) {
  EXPECT_EQ(build_rows(row_request(2, 4), {.cp = 8, .dp = 2}).programs.size(), 1U);
}

TEST(ContextParallel, GrowsTheSequenceUnderWeakScalingAndCountsTheWork) {
  constexpr int layers = 2, m = 3;
  const Workload& hybrid = find_workload("hybrid");
  const Request base = row_request(layers, m);
  const double one = hybrid.work_per_step(hybrid.scale(base, {}, Scaling::weak));
  for (const mesh::Shape mesh :
       {mesh::Shape{.cp = 2}, mesh::Shape{.cp = 8}, mesh::Shape{.tp = 2, .cp = 2, .dp = 2}}) {
    const Request request = hybrid.scale(base, mesh, Scaling::weak);
    EXPECT_EQ(request.model.sequence, base.model.sequence * mesh.cp);
    const double flop = program::facts(hybrid.build(request).of(0), mesh).flop.value();
    EXPECT_DOUBLE_EQ(flop, layers * m * layer_flop(row_s, row_s * mesh.cp));
    // Throughput counts work: what all ranks do, as a multiple of what the one does.
    EXPECT_DOUBLE_EQ(hybrid.work_per_step(request) / one,
                     mesh.size() * flop / (layers * m * layer_flop(row_s, row_s)));
  }
}

/// A step in which a GEMM takes a nanosecond for each FLOP, and a block's travel a nanosecond for
/// each `bytes_each` bytes.
double exposed(const program::ProgramSet& set, std::uint64_t bytes_each) {
  const program::OutlineSet outline = program::outline(set, program::Section::step);
  simulate::Costs costs = simulate::unit_costs(outline);
  for (std::size_t t = 0; t < costs.tables.size(); ++t) {
    for (std::size_t i = 0; i < costs.tables[t].size(); ++i) {
      const program::OutlineOp& op = outline.outlines[t].ops[i];
      if (op.kind != OpKind::exchange) continue;
      costs.tables[t][i] = units::Nanoseconds{static_cast<std::int64_t>(op.bytes / bytes_each)};
    }
  }
  const auto plays = simulate::simulate(outline, costs);
  return static_cast<double>(plays[0].ranks[0].end.value()) -
         program::facts(set.of(0), set.mesh).flop.value();
}

TEST(ContextParallel, HidesAllButTheLastBlockUnderTheGemmsOfTheBlocksThatAreThere) {
  // A block travels in less time than it is multiplied in, so all but the last is hidden: with
  // nothing left to multiply, the last sum of the keys' gradient comes under the last product of
  // the queries' gradient.
  for (const int cp : {2, 4}) {
    const auto set = build_rows(row_request(1, 1), {.cp = cp});
    const double block = row_s / cp * row_b * row_kv_heads * row_d * row_element;
    const double product = 2 * row_b * row_heads * row_s / cp * row_s / cp * row_d;
    ASSERT_LT(block, product);
    EXPECT_EQ(exposed(set, 1), 0) << cp;
  }
}

TEST(ContextParallel, TwinsKeepTheMeshAndDivide) {
  const Workload& hybrid = find_workload("hybrid");
  for (const mesh::Shape mesh : {mesh::Shape{.cp = 8}, mesh::Shape{.tp = 4, .cp = 4},
                                 mesh::Shape{.tp = 2, .cp = 2, .dp = 2, .pp = 2}}) {
    for (const Options& options :
         {Options{}, Options{{"sequence_parallel", "on"}, {"chunks", "2"}},
          Options{{"sequence_parallel", "on"}, {"ring", "on"}, {"vocabulary", "on"}}}) {
      const Request twin =
          hybrid.twin(hybrid.scale(row_request(4, 4, options), mesh, Scaling::strong));
      EXPECT_EQ(twin.mesh, mesh);
      const int parts = options.contains("sequence_parallel") ? mesh.cp * mesh.tp : mesh.cp;
      EXPECT_EQ(twin.model.sequence % parts, 0);
      EXPECT_NO_THROW(program::check(hybrid.build(twin))) << mesh::to_string(mesh);
    }
  }
}

TEST(ContextParallel, HasAWorkloadOfItsOwn) {
  const Workload& cp = find_workload("cp");
  EXPECT_EQ(cp.natural_mesh(8).at(Axis::cp), 8);
  EXPECT_TRUE(find_workload("hybrid").axes.contains(Axis::cp));
}

}  // namespace
}  // namespace isoscale::workloads
