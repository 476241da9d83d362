// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Sharded and offloaded states compute what one rank with all of them computes.
#include <gtest/gtest.h>

#include "program/check.hpp"
#include "program/facts.hpp"
#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

using workloads::Options;

std::vector<Options> zero_options() {
  return {
      {{"zero", "1"}},
      {{"zero", "2"}},
      {{"zero", "3"}},
      {{"zero", "3"}, {"prefetch", "0"}},
      {{"zero", "3"}, {"prefetch", "3"}, {"schedule", "interleaved"}, {"stage_layers", "nearest"}},
      {{"zero", "2"}, {"schedule", "zb-h1"}},
      {{"zero", "3"}, {"schedule", "zb-h1"}}};
}

std::vector<Options> offload_options() {
  return {{{"offload", "weights"}},
          {{"offload", "weights"}, {"prefetch", "0"}},
          {{"offload", "weights"}, {"offload_memory", "managed"}},
          {{"offload", "weights"}, {"schedule", "zb-h1"}},
          {{"offload", "optimizer"}, {"optimizer", "adam"}},
          {{"offload", "optimizer"}, {"optimizer", "adam"}, {"offload_memory", "managed"}}};
}

std::vector<Options> options_of_both() {
  return {{{"zero", "1"}, {"offload", "weights"}},
          {{"zero", "2"}, {"offload", "weights"}},
          {{"zero", "1"}, {"offload", "optimizer"}, {"optimizer", "adam"}},
          {{"zero", "2"},
           {"offload", "optimizer"},
           {"optimizer", "adam"},
           {"offload_memory", "managed"}},
          {{"zero", "3"}, {"offload", "optimizer"}, {"optimizer", "adam"}}};
}

/// One of the covering levels of what `given` leaves open; none when the mesh does not divide the
/// model.
std::vector<TwinCase> states_case(const mesh::Shape& mesh, const workloads::Model& model,
                                  const Options& given, Levels level) {
  workloads::Request base{.model = model, .options = given};
  base.options.insert({{"microbatch", "2"},
                       {"microbatches", "24"},
                       {"schedule", level("1f1b", "gpipe")},
                       {"overlap", level("on", "off")},
                       {"tp_output", level("reduce", "gather")},
                       {"vocabulary", level("off", "on")},
                       {"optimizer", level("adam", "sgd")},
                       {"input", level("resident", "pinned")}});
  return twin_of(std::move(base), mesh, level);
}

/// Each mesh with each of these options takes `runs` of the covering levels, and the models in
/// turn.
void expect_equal(const std::vector<mesh::Shape>& meshes, const std::vector<Options>& ways,
                  std::size_t runs) {
  const Ranks ranks;
  const auto models = twin_models();
  const auto levels = covering_levels();
  std::size_t turn = 0, cases = 0;
  for (const mesh::Shape& mesh : meshes) {
    for (const Options& options : ways) {
      for (std::size_t run = 0; run < runs; ++run, ++turn) {
        for (std::size_t skipped = 0; skipped < models.size(); ++skipped) {
          const auto point = states_case(mesh, models[(turn + skipped) % models.size()], options,
                                         levels[turn % levels.size()]);
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

std::vector<mesh::Shape> only_sharded(std::vector<mesh::Shape> meshes) {
  std::erase_if(meshes, [](const mesh::Shape& mesh) { return mesh.dp == 1; });
  return meshes;
}

TEST(ZeroTwin, EveryStageOnEveryMeshEqualsOneRank) {
  expect_equal(only_sharded(meshes_with(comm::Communicator::world().size(), 1)), zero_options(), 3);
}

TEST(ZeroTwin, ReplicasWithPartsOfTheSequenceEqualOneRank) {
  const int ranks = comm::Communicator::world().size();
  if (ranks % 2 != 0 || ranks < 4) GTEST_SKIP() << "takes two replicas of two parts";
  expect_equal(only_sharded(meshes_with(ranks, 2)),
               {{{"zero", "1"}}, {{"zero", "2"}}, {{"zero", "3"}}}, 2);
}

TEST(OffloadTwin, WeightsAndStatesInHostMemoryEqualOneRank) {
  expect_equal(meshes_with(comm::Communicator::world().size(), 1), offload_options(), 2);
}

TEST(OffloadTwin, ShardsInHostMemoryEqualOneRank) {
  expect_equal(only_sharded(meshes_with(comm::Communicator::world().size(), 1)), options_of_both(),
               2);
}

}  // namespace
}  // namespace isoscale::runner
