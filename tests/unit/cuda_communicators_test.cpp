// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "executor/cuda/communicators.hpp"
#include "program/builder.hpp"
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

/// `hops` further on to each of them, sent and received, on streams[i].
program::ProgramSet exchanges(int ranks, const std::vector<int>& hops,
                              const std::vector<std::string>& streams) {
  program::Builder builder{Shape{.dp = ranks}};
  const program::BufferId from = builder.allocate({.count = 1}),
                          to = builder.allocate({.count = 1});
  builder.emit(builder.stream("compute"),
               program::Fill{.dst = builder.whole(from), .source = program::FillSource::constant});
  builder.begin(program::Section::step);
  for (std::size_t i = 0; i < hops.size(); ++i) {
    builder.emit(builder.stream(streams[i]),
                 program::Exchange{{{.direction = program::Direction::send,
                                     .axis = Axis::dp,
                                     .offset = hops[i],
                                     .slice = builder.whole(from)},
                                    {.direction = program::Direction::receive,
                                     .axis = Axis::dp,
                                     .offset = -hops[i],
                                     .slice = builder.whole(to)}}});
  }
  return {.mesh = {.dp = ranks},
          .programs = {builder.finish()},
          .program_of_rank = std::vector<std::uint32_t>(static_cast<std::size_t>(ranks), 0)};
}

TEST(CommunicatorPlans, OneCarriesTheMessagesOfManyLinks) {
  const std::vector<std::string> one{"compute", "compute", "compute"};
  const CommunicatorPlan joined = communicator_plan(exchanges(8, {1, 2, 5}, one));
  ASSERT_EQ(joined.links.size(), 1U);
  EXPECT_EQ(joined.links[0], (LinkKind{.axis = Axis::dp, .distance = 0, .parity = 0}));
  for (int rank = 0; rank < 8; ++rank) {
    for (const int offset : {1, -2, 5}) {
      EXPECT_EQ(joined.carrier(link_kind({.dp = 8}, rank, Axis::dp, offset)), joined.links[0]);
    }
  }
  // Few links, links between the same two ranks, and several streams are kept apart.
  EXPECT_TRUE(communicator_plan(exchanges(8, {1, -1}, one)).joined.empty());
  EXPECT_TRUE(communicator_plan(exchanges(4, {1, 2, -2}, one)).joined.empty());
  EXPECT_TRUE(
      communicator_plan(exchanges(8, {1, 2, 5}, {"compute", "compute", "other"})).joined.empty());
}

TEST(CommunicatorPlans, PairsOfAllRanksTakeOne) {
  const workloads::Workload& p2p = workloads::find_workload("p2p");
  for (const int ranks : {4, 7, 16, 64}) {
    const workloads::Request request{.mesh = {.dp = ranks}};
    EXPECT_EQ(communicator_plan(p2p.bench.build(request, 0).set).links.size(), 1U) << ranks;
  }
}

TEST(CommunicatorPlans, OneRankNeedsNone) {
  const CommunicatorPlan plan = plan_of({});
  EXPECT_TRUE(plan.collectives.empty());
  EXPECT_TRUE(plan.links.empty());
}

}  // namespace
}  // namespace isoscale::executor::cuda
