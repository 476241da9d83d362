// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Rows split over tp and the sequence split over cp compute what one rank computes.
#include <gtest/gtest.h>

#include "program/check.hpp"
#include "program/outline.hpp"
#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

/// How the ranks of a tp group share rows.
std::vector<workloads::Options> row_options() {
  return {{{"sequence_parallel", "on"}},
          {{"sequence_parallel", "on"}, {"chunks", "2"}},
          {{"sequence_parallel", "on"}, {"chunks", "4"}},
          {{"sequence_parallel", "on"}, {"ring", "on"}},
          {{"chunks", "2"}},
          {{"chunks", "4"}}};
}

/// One of the covering levels of all else; none when the mesh does not divide the model.
std::vector<TwinCase> row_case(const mesh::Shape& mesh, const workloads::Model& model,
                               const workloads::Options& rows, const char* schedule, Levels level) {
  workloads::Request base{.model = model, .options = rows};
  base.model.sequence = 128;  // every mesh and chunk divides it
  base.options.insert({{"microbatch", "2"},
                       {"microbatches", "24"},
                       {"schedule", schedule},
                       {"stage_layers", "nearest"},
                       {"handover", level("whole", "scattered")},
                       {"overlap", level("on", "off")},
                       {"vocabulary", level("on", "off")},
                       {"optimizer", level("sgd", "adam")},
                       {"input", level("resident", "pinned")}});
  return twin_of(std::move(base), mesh, level);
}

/// Each mesh with each way to share rows takes `runs` of the covering levels, and the models in
/// turn.
void expect_meshes_equal(const std::vector<mesh::Shape>& meshes,
                         const std::vector<workloads::Options>& ways, std::size_t runs) {
  const Ranks ranks;
  const auto models = twin_models();
  const auto levels = covering_levels();
  // Of primes to each other, so that all meet.
  constexpr std::array schedules{"1f1b", "gpipe", "interleaved", "zb-h1", "1f1b"};
  std::size_t turn = 0, cases = 0;
  for (const mesh::Shape& mesh : meshes) {
    for (const workloads::Options& rows : ways) {
      for (std::size_t run = 0; run < runs; ++run, ++turn) {
        for (std::size_t skipped = 0; skipped < models.size(); ++skipped) {
          const auto point =
              row_case(mesh, models[(turn + skipped) % models.size()], rows,
                       schedules[turn % schedules.size()], levels[turn % levels.size()]);
          if (point.empty()) continue;
          expect_equal_to_one_rank(ranks, point.front());
          ++cases;
          break;
        }
      }
    }
  }
  EXPECT_EQ(cases, meshes.size() * ways.size() * runs);
}

/// With many meshes one each, so that the test stays quick.
std::size_t runs_for(const std::vector<mesh::Shape>& meshes, std::size_t runs) {
  constexpr std::size_t few_meshes = 4;
  return meshes.size() > few_meshes ? 1 : runs;
}

TEST(TensorTwin, RowsOverEveryMeshEqualOneRank) {
  std::vector<mesh::Shape> meshes;
  for (const mesh::Shape& mesh : meshes_with_cp(comm::Communicator::world().size())) {
    if (mesh.tp > 1 && mesh.cp == 1) meshes.push_back(mesh);
  }
  expect_meshes_equal(meshes, row_options(), runs_for(meshes, 3));
}

TEST(ContextTwin, PartsOfTheSequenceOverEveryMeshEqualOneRank) {
  std::vector<mesh::Shape> meshes;
  for (const mesh::Shape& mesh : meshes_with_cp(comm::Communicator::world().size())) {
    if (mesh.cp > 1) meshes.push_back(mesh);
  }
  std::vector<workloads::Options> ways = row_options();
  ways.push_back({{"tp_output", "gather"}});
  ways.emplace_back();
  expect_meshes_equal(meshes, ways, runs_for(meshes, 2));
}

TEST(RowsTwin, InNarrowTypesEqualOneRankInF64) {
  using program::Precision;
  const Ranks ranks;
  const int n = ranks.world.size();
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  std::size_t turn = 0;
  for (const mesh::Shape& mesh :
       {mesh::Shape{.tp = n}, mesh::Shape{.cp = n}, mesh::Shape{.tp = 2, .cp = n / 2}}) {
    for (const workloads::Options& rows : row_options()) {
      for (const Precision precision : {Precision::bf16, Precision::fp8}) {
        const bool in_parts = rows.contains("chunks") || rows.contains("ring");
        if (precision == Precision::fp8 && in_parts) continue;  // refused
        const std::size_t now = turn++;
        auto points = row_case(mesh, gated_model(), rows, "1f1b",
                               covering_levels()[now % covering_levels().size()]);
        if (points.empty()) continue;  // 12 key-value heads over tp=8
        TwinCase& point = points.front();
        point.request.precision = precision;
        const Verdict verdict = verify_twin(hybrid, point.request, *ranks.emulating, ranks.world);
        EXPECT_TRUE(verdict.ok) << point.name << ": " << verdict.detail;
        EXPECT_GT(verdict.difference.value_or(0), tolerance(precision) / 100) << point.name;
      }
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
