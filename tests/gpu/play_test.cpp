// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// One rank on a real GPU: what only a GPU can show.

#include "tests/executor/sketch.hpp"
#include "tests/gpu/gpus.hpp"
#include "tests/unit/matchers.hpp"
#include "workloads/registry_and_mesh_choice.hpp"

namespace isoscale::gpu_tests {
namespace {

using executor::Sketch;
using executor::Trace;
using program::Section;

class OneRank : public testing::Test {
 protected:
  comm::Communicator self_ = comm::Communicator::world().split(0, 0);
  std::unique_ptr<executor::Executor> cuda_ = make_executor(self_);
};

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

TEST_F(OneRank, WhatDoesNotFitIsRefusedWithNumbersAndTheNextFits) {
  Sketch large;
  static_cast<void>(large.buffer(program::DType::f64, std::uint64_t{1} << 45U));  // 256 TiB
  EXPECT_THAT(executor::message_of([&] { return cuda_->prepare(large.on({}), self_); }),
              AllOf(HasSubstr("not enough GPU memory"), HasSubstr("are free")));
  const program::ProgramSet set = step_of(program::Precision::f32);
  const auto session = cuda_->prepare(set, self_);
  session->play({.section = Section::setup});
  session->play({.section = Section::step});
}

}  // namespace
}  // namespace isoscale::gpu_tests
