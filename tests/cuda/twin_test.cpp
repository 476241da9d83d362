// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh and precision computes on GPUs what one rank computes on the host, whatever the order
// in which the GPUs do what their streams and events leave open.
#include <gtest/gtest.h>

#include "tests/cuda/devices.hpp"
#include "tests/cuda/twin_requests.hpp"
#include "workloads/registry.hpp"

namespace isoscale::standin {
namespace {

using namespace gpu_twins;  // NOLINT(google-build-using-namespace): what the tests are about

class Twins : public testing::TestWithParam<settings::Graph> {};

TEST_P(Twins, OfEveryMeshAndPrecision) {
  const Gpus gpus;
  const auto executor = gpus.executor(GetParam());
  std::size_t turn = 0, played = 0;
  for (const mesh::Shape& mesh : meshes(gpus.world.size())) {
    for (const Precision precision : precisions) {
      machine().settings = healthy(gpus.world, turn);
      const auto options = option_sets();
      const auto request = request_of(mesh, precision, options[turn % options.size()]);
      // A half as graphs, the other half plainly.
      const bool is_even = (turn + turn / precisions.size()) % 2 == 0;
      ++turn;
      if (is_even == (GetParam() == settings::Graph::on) || !request) continue;
      expect_equal_to_one_rank(gpus.world, *executor, *request);
      ++played;
    }
  }
  EXPECT_GE(played, turn / 2 - 1);  // tp=8 leaves too little for fp8
  EXPECT_EQ(machine().graph_launches > 0, GetParam() == settings::Graph::on);
  EXPECT_EQ(machine().memory.damaged(), 0);
}

TEST(Twin, GivesBackAllItTook) {
  const Gpus gpus;
  const Alive before = machine().alive;
  const std::size_t pieces = machine().memory.count();
  const mesh::Shape mesh{.dp = gpus.world.size()};
  {
    const auto executor = gpus.executor(settings::Graph::on);
    expect_equal_to_one_rank(gpus.world, *executor, request_of(mesh, Precision::bf16, {}).value());
  }
  EXPECT_EQ(machine().alive, before);
  EXPECT_EQ(machine().memory.count(), pieces);
  EXPECT_EQ(machine().queue.size(), 0U);
}

/// Without waits between streams, work overtakes what it needs.
TEST(Twin, FindsAWaitThatIsMissing) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const Gpus gpus;
  const auto executor = gpus.executor();
  const int ranks = gpus.world.size();
  const std::vector<mesh::Shape> tried{{.dp = ranks}, {.pp = ranks}};
  for (const mesh::Shape& mesh : tried) {
    const workloads::Options options{{"input", "pinned"}};
    const workloads::Request twin = hybrid.twin(request_of(mesh, Precision::f64, options).value());
    const program::ProgramSet good = hybrid.build(twin);
    program::ProgramSet bad = good;
    for (program::RankProgram& program : bad.programs) {
      for (program::Op& op : program.step().ops) op.wait_count = 0;
    }
    int found = 0;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      machine().settings = healthy(gpus.world, seed);
      const auto verify = [&](const program::ProgramSet& set) {
        return runner::measure::verify_programs(set, hybrid, twin, *executor, gpus.world);
      };
      found += verify(bad).ok ? 0 : 1;
      const runner::measure::Verdict still = verify(good);
      EXPECT_TRUE(still.ok) << still.detail;
    }
    EXPECT_GT(found, 0) << mesh::to_string(mesh);
  }
}

INSTANTIATE_TEST_SUITE_P(Plays, Twins, testing::Values(settings::Graph::off, settings::Graph::on),
                         [](const auto& one) {
                           return one.param == settings::Graph::on ? "graph" : "plain";
                         });

}  // namespace
}  // namespace isoscale::standin
