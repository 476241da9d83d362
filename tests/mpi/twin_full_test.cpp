// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh with every set of levels; takes long.
#include <gtest/gtest.h>

#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

TEST(Twin, OfEveryMeshWithAllOptionsEqualsOneRank) {
  const Ranks ranks;
  const auto models = twin_models();
  // Beyond two ranks the models take turns.
  constexpr int most_ranks_for_all = 2;
  const std::size_t stride = ranks.world.size() > most_ranks_for_all ? models.size() : 1;
  std::size_t cases = 0;
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    for (unsigned levels = 0; levels < level_sets; ++levels) {
      for (std::size_t model = levels % stride; model < models.size(); model += stride) {
        for (const TwinCase& point : twin_case(mesh, models[model], levels)) {
          expect_equal_to_one_rank(ranks, point);
          ++cases;
        }
      }
    }
  }
  // Strong scaling leaves out what the mesh does not divide; weak scaling leaves out nothing.
  EXPECT_GE(cases, meshes_of(ranks.world.size()).size() * level_sets / 2);
}

}  // namespace
}  // namespace isoscale::runner
