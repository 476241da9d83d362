// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh, schedule and option computes what one rank computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>

#include "program/facts.hpp"
#include "runner/verify.hpp"
#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

using executor::HostStreams;
using mesh::Axis;

/// All ranks of this run, and an executor of each kind.
struct Ranks {
  [[nodiscard]] executor::Executor& executor(HostStreams streams) const {
    return streams == HostStreams::folded ? *folded : *threads;
  }

  comm::Communicator world = comm::Communicator::world();
  std::unique_ptr<executor::Executor> folded =
      executor::make_host_executor({.streams = HostStreams::folded});
  std::unique_ptr<executor::Executor> threads =
      executor::make_host_executor({.streams = HostStreams::threads});
};

/// Far above what rounding gives in twins this small, far below what any mistake gives.
constexpr double f64_difference = 1e-13;

void expect_equal_to_one_rank(const Ranks& ranks, const TwinCase& point) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  const Verdict verdict =
      verify_twin(hybrid, point.request, ranks.executor(point.streams), ranks.world);
  EXPECT_TRUE(verdict.ok) << point.name << ": " << verdict.detail;
  if (point.request.precision == workloads::Precision::f64) {
    EXPECT_LT(verdict.difference.value_or(1), f64_difference) << point.name;
  }
}

TEST(CoveringSet, PairsEveryTwoLevels) {
  for (unsigned a = 0; a < factor_count; ++a) {
    for (unsigned b = 0; b < a; ++b) {
      std::map<unsigned, int> seen;
      for (const unsigned run : covering_levels()) {
        ++seen[((run >> a) & 1U) * 2 + ((run >> b) & 1U)];
      }
      EXPECT_THAT(seen, testing::ElementsAre(testing::Pair(0, 3), testing::Pair(1, 3),
                                             testing::Pair(2, 3), testing::Pair(3, 3)));
    }
  }
}

TEST(Twin, OfEveryMeshEqualsOneRank) {
  const Ranks ranks;
  const auto models = twin_models();
  int cases = 0;
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    std::size_t turn = 0;
    for (const unsigned levels : covering_levels()) {
      // The next model that this mesh divides: over a mesh each has its turns.
      for (std::size_t skipped = 0; skipped < models.size(); ++skipped) {
        const auto point = twin_case(mesh, models[turn++ % models.size()], levels);
        if (point.empty()) continue;
        expect_equal_to_one_rank(ranks, point.front());
        ++cases;
        break;
      }
    }
  }
  EXPECT_EQ(cases, 12 * static_cast<int>(meshes_of(ranks.world.size()).size()));
}

}  // namespace
}  // namespace isoscale::runner
