// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Weights stay finite over many timed steps, whatever the size of the model. Attention without
// softmax is cubic in its input: weights that are a little too large make it grow without bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "executor/host/host.hpp"
#include "runner/measure/step_check.hpp"
#include "workloads/registry.hpp"

namespace isoscale::runner {
namespace {

struct Sizes {
  int layers = 1, hidden = 96, heads = 16, sequence = 32;
};

workloads::Request request_of(const Sizes& sizes) {
  workloads::Request base{.model = {.name = "small",
                                    .source = "test",
                                    .hidden = sizes.hidden,
                                    .ffn = 4 * sizes.hidden,
                                    .heads = sizes.heads,
                                    .kv_heads = sizes.heads,
                                    .head_size = sizes.hidden / sizes.heads,
                                    .layers = sizes.layers,
                                    .sequence = sizes.sequence,
                                    .vocabulary = 64},
                          .options = {{"microbatch", "1"}, {"microbatches", "1"}}};
  return workloads::find_workload("hybrid").scale(base, {}, workloads::Scaling::strong);
}

class FiniteWeights : public testing::TestWithParam<Sizes> {};

TEST_P(FiniteWeights, AfterFiftySteps) {
  const comm::Communicator world = comm::Communicator::world();
  program::ProgramSet set = workloads::find_workload("hybrid").build(request_of(GetParam()));
  measure::StepCheck check{set};
  const auto executor = executor::make_host_executor({.streams = executor::HostStreams::folded});
  const auto session = executor->prepare(set, world);
  session->play(program::Section::setup, executor::Trace::off);
  for (int step = 0; step < 50; ++step) {
    session->play(program::Section::step, executor::Trace::off);
  }
  check.weights(*session, world);
  EXPECT_TRUE(check.verdict().ok) << check.verdict().detail;
}

INSTANTIATE_TEST_SUITE_P(
    Models, FiniteWeights,
    testing::Values(Sizes{.layers = 12, .hidden = 96},
                    Sizes{.layers = 8, .hidden = 88, .heads = 11}, Sizes{.layers = 1, .hidden = 96},
                    Sizes{.layers = 2, .hidden = 60, .heads = 4}, Sizes{.layers = 48, .hidden = 64},
                    Sizes{.layers = 24, .hidden = 100, .heads = 4},
                    Sizes{.layers = 2, .hidden = 16, .heads = 4, .sequence = 768}),
    [](const auto& of) {
      return fmt::format("layers{}_hidden{}_sequence{}", of.param.layers, of.param.hidden,
                         of.param.sequence);
    });

}  // namespace
}  // namespace isoscale::runner
