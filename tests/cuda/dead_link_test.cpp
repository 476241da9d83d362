// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Links that are dead from the start, which p2p and the test of speeds before a run shall name.

#include "runner/microbench/rank_and_pair_speeds.hpp"
#include "tests/cuda/devices.hpp"
#include "tests/mpi/point_runs.hpp"

namespace isoscale::standin {
namespace {

class DeadLinks : public OnGpus {
 protected:
  /// Links with this communicator are dead. A result that is no error makes plays hang.
  static void die(const char* communicator, ncclResult_t result) {
    machine().settings.failing_communicator = communicator;
    machine().settings.failing_result = result;
  }

  OnPoints executor_{gpus_.executor()};
};

TEST_F(DeadLinks, GiveNoAnswerInTheFirstPlay) {
  using program::Direction;
  executor::Sketch sketch;
  const program::Slice out = sketch.buffer<float>(64), in = sketch.buffer<float>(64);
  sketch.emit(program::Exchange{
      {{Direction::send, mesh::Axis::dp, 1, out}, {Direction::receive, mesh::Axis::dp, -1, in}}});
  for (const ncclResult_t result : {ncclSuccess, ncclRemoteError, ncclSystemError}) {
    die("dp, all links", result);
    const auto session = prepare(executor_, sketch, {.connects_in_play = true});
    EXPECT_THROW(session->play({.section = program::Section::step, .timeout = units::Seconds{0.2}}),
                 executor::NoAnswer)
        << result;
  }
}

TEST_F(DeadLinks, AreFailedRowsOfP2p) {
  die("dp, all links", ncclRemoteError);
  runner::PointRuns runs{executor_};
  settings::RunConfig config = runner::config_of(
      "p2p", {.options = {{"size", "4096"}, {"kinds", "latency,bandwidth"}}}, gpus_.world.size());
  const auto data = runs.run(config, runner::effort_of(0.2, 0.0, 1));
  EXPECT_EQ(data.status, results::PointStatus::failed);
  EXPECT_EQ(data.rows.empty(), gpus_.world.rank() != 0);
  for (const results::RowData& row : data.rows) {
    EXPECT_THAT(row.reason, HasSubstr("no answer (time limit 30 s) between"));
  }
}

TEST_F(DeadLinks, AreFoundBeforeARun) {
  die("pp, all links", ncclRemoteError);
  // Each GEMM takes so long that few are made.
  machine().settings.matmul_cost = [](int, std::int64_t) -> std::int64_t { return 200'000'000; };
  const std::vector<int> one_node(static_cast<std::size_t>(gpus_.world.size()));
  const auto found = runner::microbench::sniff(executor_, gpus_.world, one_node);
  EXPECT_EQ(found.problem, std::nullopt);
  ASSERT_EQ(found.neighbours.size(), 1U);
  EXPECT_EQ(found.neighbours.front().bandwidth, std::nullopt);
}

}  // namespace
}  // namespace isoscale::standin
