// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// How fast programs are built, checked and simulated. Usage: bench_program [ROUNDS]
#include <fmt/format.h>

#include "bench.hpp"
#include "program/builder.hpp"
#include "program/check.hpp"
#include "program/outline.hpp"
#include "simulate/simulate.hpp"
#include "tests/support/unit_costs.hpp"
#include "workloads/registry.hpp"

namespace isoscale {
namespace {

/// A 1f1b stage of about `ops` ops.
workloads::Request request_of(int layers, int microbatches, const mesh::Shape& mesh) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::Request base{.model = workloads::load_model("gpt-1.3b")};
  base.model.layers = layers;
  base.options = {{"microbatch", "1"}, {"microbatches", std::to_string(microbatches * mesh.dp)}};
  return hybrid.scale(base, mesh, workloads::Scaling::strong);
}

std::size_t op_count(const program::ProgramSet& set) {
  std::size_t ops = 0;
  for (const program::RankProgram& program : set.programs) ops += program.step().ops.size();
  return ops;
}

void build_large(int rounds) {
  const auto request = request_of(96, 54, {.tp = 2, .dp = 2});
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const std::size_t ops = op_count(hybrid.build(request));
  const double time = bench::median_time(rounds, [&] { (void)hybrid.build(request); });
  fmt::print(
      "build         {:>9} ops in {:.4f} s: {:.0f} ns an op; 100,000 ops in {:.3f} s (goal 0.1 "
      "s)\n",
      ops, time, time / static_cast<double>(ops) * 1e9, time / static_cast<double>(ops) * 1e5);
}

void build_and_check(int rounds) {
  // 64 ranks of a 96-layer hybrid; the global batch gives every pipeline 16 microbatches.
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const auto request = request_of(96, 16, {.tp = 4, .dp = 2, .pp = 8});
  program::ProgramSet set;
  const double build = bench::median_time(rounds, [&] { set = hybrid.build(request); });
  const double check = bench::median_time(rounds, [&] { program::check(set); });
  std::size_t ops = 0;
  for (int rank = 0; rank < request.mesh.size(); ++rank) ops += set.of(rank).step().ops.size();
  fmt::print("64 ranks      {:>9} ops: build {:.3f} s + check {:.3f} s = {:.3f} s (goal 0.5 s)\n",
             ops, build, check, build + check);
}

void simulate_many(int rounds) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  for (const mesh::Shape mesh : {mesh::Shape{.tp = 4, .dp = 2, .pp = 8}, mesh::Shape{.dp = 64}}) {
    const auto set = hybrid.build(request_of(96, 16, mesh));
    const program::OutlineSet outline = program::outline(set, program::Section::step);
    const simulate::Costs costs = simulate::unit_costs(outline);
    double ops = 0;
    for (int rank = 0; rank < mesh.size(); ++rank) {
      ops += static_cast<double>(outline.of(rank).ops.size());
    }
    const double time =
        bench::median_time(rounds, [&] { (void)simulate::simulate(outline, costs); });
    fmt::print("simulate      {:>9.0f} ops on {}: {:.2f} million ops a second (goal 5)\n", ops,
               mesh::to_string(mesh), ops / time * 1e-6);
  }
}

int run(int argc, char** argv) {
  const int rounds = bench::argument(argc, argv, 1, 11);
  build_large(rounds);
  build_and_check(rounds);
  simulate_many(rounds);
  return 0;
}

}  // namespace
}  // namespace isoscale

int main(int argc, char** argv) { return isoscale::run(argc, argv); }
