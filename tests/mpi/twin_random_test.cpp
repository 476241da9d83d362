// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Random combinations of options, ISOSCALE_RANDOM_TWINS of them, compute what one rank computes.

#include <bit>

#include "tests/mpi/twin_cases.hpp"
#include "tests/support/random_requests.hpp"

namespace isoscale::runner {
namespace {

TEST(RandomTwins, EqualOneRank) {
  const char* const given = std::getenv("ISOSCALE_RANDOM_TWINS");
  const int wanted = given != nullptr ? std::stoi(given) : 50;
  const Ranks ranks;
  workloads::RandomRequests requests{20260101, {"transport"}};  // the host has one
  for (int i = 0; i < wanted; ++i) {
    const workloads::Request request = requests.next(ranks.world.size());
    expect_equal_to_one_rank(ranks, {.name = workloads::describe(request),
                                     .request = request,
                                     .streams = i % 2 == 0 ? executor::HostStreams::folded
                                                           : executor::HostStreams::threads});
  }
}

/// Every mesh with every set of levels; takes long.
TEST(Twin, OfEveryMeshWithAllOptionsEqualsOneRank) {
  const Ranks ranks;
  const auto models = twin_models();
  // Beyond two ranks the models take turns; beyond four, each mesh takes the half of the sets with
  // an even (or an odd) number of ones, in which any eight factors still have all levels.
  const int size = ranks.world.size();
  const std::size_t stride = size > 2 ? models.size() : 1;
  const unsigned share = size > 4 ? 2 : 1;
  const auto meshes = meshes_of(size);
  std::size_t cases = 0;
  for (unsigned m = 0; m < meshes.size(); ++m) {
    for (unsigned levels = 0; levels < level_sets; ++levels) {
      if (static_cast<unsigned>(std::popcount(levels)) % share != m % share) continue;
      for (std::size_t model = levels % stride; model < models.size(); model += stride) {
        for (const TwinCase& point :
             twin_case(meshes[m], {.model = models[model]}, Levels{levels})) {
          expect_equal_to_one_rank(ranks, point);
          ++cases;
        }
      }
    }
  }
  // Strong scaling leaves out what the mesh does not divide; weak scaling leaves out nothing.
  EXPECT_GE(cases, meshes.size() * level_sets / share / 2);
}

}  // namespace
}  // namespace isoscale::runner
