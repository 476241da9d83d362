// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Beside twins: messages of the size of real ones, what deals are made from, and what the host and
// its emulation of narrow types play.
#include <gtest/gtest.h>

#include "program/check.hpp"
#include "program/facts.hpp"
#include "program/low_precision.hpp"
#include "program/outline.hpp"
#include "runner/microbench/rank_speeds.hpp"
#include "tests/executor/sketch.hpp"
#include "tests/mpi/twin_cases.hpp"
#include "workloads/registry.hpp"

namespace isoscale::runner {
namespace {

/// Meshes with every axis at least once, tp at most 2 so that shards stay large.
std::vector<mesh::Shape> large_meshes(int ranks) {
  switch (ranks) {
    case 2:
      return {{.tp = 2}, {.dp = 2}, {.pp = 2}};
    case 4:
      return {{.tp = 2, .dp = 2}, {.tp = 2, .pp = 2}, {.dp = 2, .pp = 2}};
    default:
      return {{.tp = 2, .dp = ranks / 4, .pp = 2}, {.tp = 2, .pp = ranks / 2}};
  }
}

/// With microbatches of two samples, an activation is 128 x 128.
workloads::Model large_model(int layers) {
  return {.name = "large",
          .source = "test",
          .hidden = 128,
          .ffn = 128,
          .heads = 8,
          .kv_heads = 8,
          .head_size = 16,
          .layers = layers,
          .sequence = 64,
          .vocabulary = 128};
}

TEST(Messages, AboveTheEagerLimitArriveWhole) {
  // Not the twin: activations of 128 rows and columns in f64, and buckets of as many bytes.
  constexpr std::uint64_t least = std::uint64_t{128} * 1024;
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  for (const mesh::Shape& mesh : large_meshes(ranks.world.size())) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      workloads::Request base{.model = large_model(mesh.pp),
                              .precision = program::Precision::f64,
                              .options = {{"microbatch", "2"},
                                          {"microbatches", "4"},
                                          {"bucket", "128KiB"},
                                          {"schedule", schedule}},
                              .keep = workloads::Keep::observables};
      const workloads::Request request = hybrid.scale(base, mesh, workloads::Scaling::strong);
      const program::ProgramSet set = hybrid.build(request);
      program::check(set);
      std::size_t messages = 0;
      for (const program::Outline& outline :
           program::outline(set, program::Section::step).outlines) {
        for (const program::OutlineOp& op : outline.ops) {
          if (!program::communicates(op.kind)) continue;
          ++messages;
          EXPECT_GE(op.bytes, least) << program::name(op.kind);
        }
      }
      EXPECT_GE(messages, 4U);
      for (executor::Executor* executor : {ranks.folded.get(), ranks.threads.get()}) {
        const measure::Verdict verdict =
            measure::verify_programs(set, hybrid, request, *executor, ranks.world);
        EXPECT_TRUE(verdict.ok) << mesh::to_string(mesh) << " " << schedule << verdict.detail;
        EXPECT_LT(verdict.difference.value_or(1), 1e-12);
      }
    }
  }
}

/// A proportional partition is made from the speed of the largest multiplication of any stage, and
/// all ranks must take the same.
TEST(Speeds, AreOfTheLargestMultiplicationAndTheSameOnAllRanks) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const mesh::Shape mesh{.dp = ranks.world.size()};
  workloads::Request base{
      .model = gated_model(),
      .options = {{"partition", "proportional"}, {"microbatch", "1"}, {"microbatches", "2"}}};
  const workloads::Request request = hybrid.scale(base, mesh, workloads::Scaling::weak);
  EXPECT_TRUE(microbench::partitions_by_speed(request));
  EXPECT_FALSE(microbench::partitions_by_speed(hybrid.scale(base, {}, workloads::Scaling::weak)));
  const program::ProgramSet one = microbench::largest_multiplication(hybrid.build(request));
  ASSERT_EQ(one.programs.size(), 1U);
  // Queries, keys and values: 32 tokens x 96 x (24 + 2 x 12 heads of 16).
  EXPECT_EQ(program::facts(one.programs[0], mesh).flop.value(), 2.0 * 32 * 96 * (24 + 2 * 12) * 16);
  const std::vector<double> speeds =
      microbench::measure_speeds(one, *ranks.folded, ranks.world, {});
  ASSERT_EQ(speeds.size(), static_cast<std::size_t>(mesh.dp));
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    EXPECT_GT(speeds[rank], 0);
    EXPECT_EQ(ranks.world.all_max(speeds[rank]), ranks.world.all_min(speeds[rank]));
  }
}

TEST(Host, ReducesNarrowTypesAsTheirValues) {
  const Ranks ranks;
  const int size = ranks.world.size();
  for (const program::DType type : {program::DType::f16, program::DType::bf16}) {
    const program::NarrowFormat format = *program::narrow_format(type);
    executor::Sketch sketch;
    std::vector<program::Slice> results;
    const program::Slice data = sketch.buffer(type, 2);
    using program::Reduction;
    for (const Reduction reduction : {Reduction::sum, Reduction::min, Reduction::max}) {
      results.push_back(sketch.buffer(type, 2));
      sketch.emit(program::Collective{
          .reduction = reduction, .axes = mesh::Axis::dp, .send = data, .receive = results.back()});
    }
    const auto session = ranks.emulating->prepare(sketch.on({.dp = size}), ranks.world);
    const double mine = ranks.world.rank() - 1.5;
    executor::put<std::uint16_t>(*session, data, {encode(format, mine), encode(format, 2 * mine)});
    session->play(program::Section::step, executor::Trace::off);
    const double sum = size * (size - 1) / 2.0 - 1.5 * size;
    const std::array expected{sum, -1.5, size - 2.5};
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto values = executor::get<std::uint16_t>(*session, results[i]);
      EXPECT_EQ(static_cast<double>(decode(format, values[0])), expected[i]);
      EXPECT_EQ(static_cast<double>(decode(format, values[1])), 2 * expected[i]);
    }
  }
}

TEST(Host, RefusesToComputeInNarrowTypes) {
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const mesh::Shape mesh{.dp = ranks.world.size()};
  for (TwinCase& point : twin_case(mesh, {.model = gated_model()}, 0)) {
    point.request.precision = program::Precision::bf16;
    const measure::Verdict verdict =
        measure::verify_twin(hybrid, point.request, *ranks.folded, ranks.world);
    EXPECT_FALSE(verdict.ok);
    EXPECT_NE(verdict.detail.find("f32 and f64 only"), std::string::npos) << verdict.detail;
  }
  EXPECT_EQ(ranks.folded->describe().precisions.size(), 2U);
  EXPECT_EQ(ranks.emulating->describe().precisions.size(), 6U);
}

}  // namespace
}  // namespace isoscale::runner
