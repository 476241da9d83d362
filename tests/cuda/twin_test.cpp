// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh and precision computes on GPUs what one rank computes on the host, whatever the order
// in which the GPUs do what their streams and events leave open.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "mesh/resolve.hpp"
#include "runner/verify.hpp"
#include "tests/cuda/devices.hpp"
#include "workloads/workload.hpp"

namespace isoscale::standin {
namespace {

using workloads::Precision;

/// Divides by 2, 4 and 8 along every axis, also in units of 16 elements.
workloads::Model model() {
  return {.name = "small",
          .source = "test",
          .hidden = 128,
          .ffn = 256,
          .heads = 8,
          .kv_heads = 8,
          .head_size = 16,
          .layers = 8,
          .sequence = 8,
          .vocabulary = 128};
}

std::vector<mesh::Shape> meshes(int ranks) {
  std::vector<mesh::Shape> all{{.dp = ranks}, {.tp = ranks}, {.pp = ranks}};
  if (ranks == 4) all.insert(all.end(), {{.tp = 2, .dp = 2}, {.dp = 2, .pp = 2}});
  if (ranks == 8) all.push_back({.tp = 2, .dp = 2, .pp = 2});
  return all;
}

/// Nothing when the mesh does not divide the model.
std::optional<workloads::Request> request_of(const mesh::Shape& mesh, Precision precision,
                                             workloads::Options options) {
  workloads::Request base{.model = model(), .precision = precision, .options = std::move(options)};
  base.options.insert({{"microbatch", "2"}, {"microbatches", "8"}});
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  if (mesh::violation(mesh, hybrid.limits(base, workloads::Scaling::strong))) return std::nullopt;
  return hybrid.scale(base, mesh, workloads::Scaling::strong);
}

constexpr std::array precisions{Precision::f64, Precision::f32,  Precision::tf32,
                                Precision::f16, Precision::bf16, Precision::fp8};

/// Sets of options that take turns.
std::vector<workloads::Options> option_sets() {
  return {{{"schedule", "1f1b"}, {"tp_output", "gather"}, {"input", "pinned"}},
          {{"schedule", "gpipe"}, {"input", "pageable"}, {"optimizer", "adam"}},
          {{"vocabulary", "on"}, {"input", "pinned"}, {"overlap", "off"}},
          {{"schedule", "gpipe"}, {"tp_output", "gather"}},
          {{"optimizer", "adam"}, {"vocabulary", "on"}}};
}

/// Collective.
void expect_equal_to_one_rank(const comm::Communicator& world, executor::Executor& executor,
                              const workloads::Request& request) {
  const runner::Verdict verdict =
      runner::verify_twin(workloads::find_workload("hybrid"), request, executor, world);
  std::string what =
      fmt::format("{} {}", mesh::to_string(request.mesh), workloads::name(request.precision));
  for (const auto& [key, value] : request.options) what += fmt::format(" {}={}", key, value);
  EXPECT_TRUE(verdict.ok) << what << ": " << verdict.detail;
}

class Twins : public testing::TestWithParam<config::Graph> {};

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
      if (is_even == (GetParam() == config::Graph::on) || !request) continue;
      expect_equal_to_one_rank(gpus.world, *executor, *request);
      ++played;
    }
  }
  EXPECT_GE(played, turn / 2 - 1);  // tp=8 leaves too little for fp8
  EXPECT_EQ(machine().graph_launches > 0, GetParam() == config::Graph::on);
  EXPECT_EQ(machine().memory.damaged(), 0);
}

TEST(Twin, GivesBackAllItTook) {
  const Gpus gpus;
  const Alive before = machine().alive;
  const std::size_t pieces = machine().memory.count();
  const mesh::Shape mesh{.dp = gpus.world.size()};
  {
    const auto executor = gpus.executor(config::Graph::on);
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
      for (program::Op& op : program.step.ops) op.wait_count = 0;
    }
    int found = 0;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      machine().settings = healthy(gpus.world, seed);
      const auto verify = [&](const program::ProgramSet& set) {
        return runner::verify_programs(set, hybrid, twin, *executor, gpus.world);
      };
      found += verify(bad).ok ? 0 : 1;
      const runner::Verdict still = verify(good);
      EXPECT_TRUE(still.ok) << still.detail;
    }
    EXPECT_GT(found, 0) << mesh::to_string(mesh);
  }
}

INSTANTIATE_TEST_SUITE_P(Plays, Twins, testing::Values(config::Graph::off, config::Graph::on),
                         [](const auto& one) {
                           return one.param == config::Graph::on ? "graph" : "plain";
                         });

}  // namespace
}  // namespace isoscale::standin
