// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// One rank on a real GPU: what only a GPU can show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "executor/host/host.hpp"
#include "tests/executor/sketch.hpp"
#include "tests/gpu/gpus.hpp"
#include "workloads/registry.hpp"

namespace isoscale::gpu_tests {
namespace {

using executor::Session;
using executor::Sketch;
using executor::Trace;
using program::DType;
using program::Section;

std::vector<std::byte> all_of(Session& session, const program::RankProgram& program,
                              program::BufferId id) {
  const program::Buffer& buffer = program.buffers[id];
  std::vector<std::byte> raw(buffer.count * program::element_size(buffer.dtype));
  session.read({.buffer = id, .offset = 0, .count = buffer.count}, raw);
  return raw;
}

class OneRank : public testing::Test {
 protected:
  comm::Communicator self_ = comm::Communicator::world().split(0, 0);
  std::unique_ptr<executor::Executor> cuda_ = make_executor(self_);
};

/// A shard with gaps, as tp makes them, in every type.
TEST_F(OneRank, FillsAreTheHostsBitByBit) {
  const auto host = executor::make_host_executor({});
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    Sketch sketch;
    constexpr std::uint64_t rows = 301, parts = 2, columns = 77;
    const program::Slice slice = sketch.buffer(type, rows * parts * columns);
    sketch.emit(program::Fill{.dst = slice,
                              .shard = {.extents = {rows, parts, columns},
                                        .local = {parts * columns, columns, 1},
                                        .global = {4 * parts * columns, 2 * columns, 1},
                                        .base = columns},
                              .key = 42,
                              .exponent = -9});
    const auto here = host->prepare(sketch.on({}), self_);
    const auto there = cuda_->prepare(sketch.on({}), self_);
    here->play({.section = Section::step});
    there->play({.section = Section::step});
    EXPECT_EQ(all_of(*there, sketch.program(), slice.buffer),
              all_of(*here, sketch.program(), slice.buffer))
        << program::name(type);
  }
}

program::ProgramSet step_of(program::Precision precision) {
  const workloads::Workload& dp = workloads::find_workload("dp");
  workloads::Request base{.model = workloads::load_model("tiny"), .precision = precision};
  base.options = {{"microbatch", "2"}, {"microbatches", "2"}, {"input", "pinned"}};
  return dp.build(dp.scale(base, {}, workloads::Scaling::strong));
}

TEST_F(OneRank, SpansLieInsideTheStepAndFollowEachOtherOnAStream) {
  const program::ProgramSet set = step_of(program::Precision::bf16);
  const program::Program& step = set.programs.front().step();
  for (const settings::Graph graph : {settings::Graph::off, settings::Graph::on}) {
    const auto cuda = make_executor(self_, graph);
    const auto session = cuda->prepare(set, self_);
    session->play({.section = Section::setup});
    for (int play = 0; play < 3; ++play) {
      const executor::PlayTime time = session->play({.section = Section::step, .trace = Trace::on});
      const auto spans = session->spans();
      ASSERT_EQ(spans.size(), step.ops.size());
      // Elapsed times are floats of milliseconds, with a resolution of half a microsecond.
      constexpr units::Nanoseconds resolution{1'000};
      std::array<units::Nanoseconds, program::max_streams> ended{};
      ended.fill(time.begin);
      for (std::size_t i = 0; i < spans.size(); ++i) {
        EXPECT_GE((spans[i].start + resolution).value(), ended[step.ops[i].stream].value()) << i;
        EXPECT_GE(spans[i].end.value(), spans[i].start.value()) << i;
        EXPECT_LE(spans[i].end.value(), (time.end + resolution).value()) << i;
        ended[step.ops[i].stream] = spans[i].end;
      }
    }
  }
}

TEST_F(OneRank, GraphsComputeWhatPlainPlaysDo) {
  const program::ProgramSet set = step_of(program::Precision::f32);
  const program::RankProgram& program = set.programs.front();
  const auto graph = make_executor(self_, settings::Graph::on);
  const auto plainly = cuda_->prepare(set, self_);
  const auto replayed = graph->prepare(set, self_);
  constexpr float rounding = 1e-5F;
  for (Session* const session : {plainly.get(), replayed.get()}) {
    session->play({.section = Section::setup});
    for (int play = 0; play < 4; ++play) {
      session->play({.section = Section::step, .trace = play == 2 ? Trace::on : Trace::off});
    }
  }
  for (program::BufferId id = 0; id < program.buffers.size(); ++id) {
    if (program.buffers[id].role != program::Role::weight) continue;
    const auto a = executor::get<float>(
        *plainly, {.buffer = id, .offset = 0, .count = program.buffers[id].count});
    const auto b = executor::get<float>(
        *replayed, {.buffer = id, .offset = 0, .count = program.buffers[id].count});
    // The two executors may have chosen other algorithms.
    EXPECT_THAT(a, testing::Pointwise(testing::FloatNear(rounding), b));
  }
}

TEST_F(OneRank, WhatDoesNotFitIsRefusedWithNumbersAndTheNextFits) {
  Sketch large;
  static_cast<void>(large.buffer(DType::f64, std::uint64_t{1} << 45U));  // 256 TiB
  EXPECT_THAT(
      executor::message_of([&] { return cuda_->prepare(large.on({}), self_); }),
      testing::AllOf(testing::HasSubstr("not enough GPU memory"), testing::HasSubstr("are free")));
  const program::ProgramSet set = step_of(program::Precision::f32);
  const auto session = cuda_->prepare(set, self_);
  session->play({.section = Section::setup});
  session->play({.section = Section::step});
}

}  // namespace
}  // namespace isoscale::gpu_tests
