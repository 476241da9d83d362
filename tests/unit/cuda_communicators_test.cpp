// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "executor/cuda/communicators.hpp"
#include "workloads/workload.hpp"

namespace isoscale::executor::cuda {
namespace {

using mesh::Axis;
using mesh::Shape;

TEST(Links, BothEndsNameALinkAlike) {
  for (const int extent : {2, 3, 4, 5, 8}) {
    const Shape shape{.tp = 2, .pp = extent};
    for (int rank = 0; rank < shape.size(); ++rank) {
      for (const int distance : {1, 2, 3}) {
        const int peer = mesh::neighbour(shape, rank, Axis::pp, distance);
        EXPECT_EQ(link_kind(shape, rank, Axis::pp, distance),
                  link_kind(shape, peer, Axis::pp, -distance))
            << "rank " << rank << " of pp=" << extent << ", distance " << distance;
      }
    }
  }
}

TEST(Links, PreviousAndNextStageHaveCommunicatorsOfTheirOwn) {
  for (const int extent : {2, 3, 4, 5, 8}) {
    const Shape shape{.pp = extent};
    // A pipeline does not wrap; the rank at the end of an odd ring may have two alike.
    for (int rank = 1; rank + 1 < extent; ++rank) {
      EXPECT_NE(link_kind(shape, rank, Axis::pp, -1), link_kind(shape, rank, Axis::pp, 1))
          << "stage " << rank << " of " << extent;
    }
  }
}

/// NCCL matches messages between two ranks of one communicator by order alone.
TEST(Links, TwoLinksBetweenTheSameRanksAreToldApart) {
  for (const int extent : {2, 4, 6}) {
    const Shape shape{.dp = extent};
    for (int distance = 1; distance <= extent; ++distance) {
      if (2 * distance % extent != 0 || distance % extent == 0) continue;  // one peer both ways
      for (int rank = 0; rank < extent; ++rank) {
        EXPECT_NE(link_kind(shape, rank, Axis::dp, distance),
                  link_kind(shape, rank, Axis::dp, -distance))
            << "rank " << rank << " of dp=" << extent << ", distance " << distance;
      }
    }
  }
}

CommunicatorPlan plan_of(const Shape& shape) {
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  workloads::Request base{.model = workloads::load_model("tiny")};
  base.options = {{"microbatch", "1"}, {"microbatches", "16"}};
  const workloads::Request request = hybrid.scale(base, shape, workloads::Scaling::strong);
  return communicator_plan(hybrid.build(request));
}

TEST(CommunicatorPlans, OneOfEachAxisAndStreamAndTwoOfAPipeline) {
  const CommunicatorPlan plan = plan_of({.tp = 2, .dp = 2, .pp = 4});
  EXPECT_EQ(plan.collectives.size(), 2U);  // tp on compute, dp on its own stream
  ASSERT_EQ(plan.links.size(), 2U);
  EXPECT_EQ(plan.links[0].parity, 0);
  EXPECT_EQ(plan.links[1].parity, 1);
}

TEST(CommunicatorPlans, TwoStagesNeedOnlyOneLink) {
  EXPECT_EQ(plan_of({.pp = 2}).links.size(), 1U);
}

TEST(CommunicatorPlans, OneRankNeedsNone) {
  const CommunicatorPlan plan = plan_of({});
  EXPECT_TRUE(plan.collectives.empty());
  EXPECT_TRUE(plan.links.empty());
}

}  // namespace
}  // namespace isoscale::executor::cuda
