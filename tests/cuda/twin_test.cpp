// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh and precision computes on GPUs what one rank computes on the host, whatever the order
// in which the GPUs do what their streams and events leave open.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mesh/resolve.hpp"
#include "runner/verify.hpp"
#include "tests/cuda/devices.hpp"
#include "workloads/workload.hpp"

namespace isoscale::standin {
namespace {

using workloads::Precision;

/// Divides by 2, 4 and 8 along every axis.
workloads::Model model() {
  return {.name = "small",
          .source = "test",
          .hidden = 64,
          .ffn = 128,
          .heads = 8,
          .kv_heads = 8,
          .head_size = 8,
          .layers = 8,
          .sequence = 16,
          .vocabulary = 64};
}

std::vector<mesh::Shape> meshes(int ranks) {
  std::vector<mesh::Shape> all{{.dp = ranks}, {.tp = ranks}, {.pp = ranks}};
  if (ranks == 4) all.insert(all.end(), {{.tp = 2, .dp = 2}, {.dp = 2, .pp = 2}});
  if (ranks == 8) all.push_back({.tp = 2, .dp = 2, .pp = 2});
  return all;
}

workloads::Request request_of(const mesh::Shape& mesh, Precision precision,
                              workloads::Options options) {
  workloads::Request base{.model = model(), .precision = precision, .options = std::move(options)};
  base.options.insert({{"microbatch", "2"}, {"microbatches", "16"}});
  return workloads::find_workload("hybrid").scale(base, mesh, workloads::Scaling::strong);
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
  for (const mesh::Shape& mesh : meshes(gpus.world.size())) {
    for (const Precision precision : {Precision::f64, Precision::f32}) {
      expect_equal_to_one_rank(gpus.world, *executor, request_of(mesh, precision, {}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plays, Twins, testing::Values(config::Graph::off, config::Graph::on),
                         [](const auto& one) {
                           return one.param == config::Graph::on ? "graph" : "plain";
                         });

}  // namespace
}  // namespace isoscale::standin
