// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "base/error.hpp"
#include "executor/cuda/communicators.hpp"
#include "matchers.hpp"
#include "stack_samples.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::executor::cuda {
namespace {

using mesh::Axis;
using mesh::Shape;

/// NCCL matches messages between two ranks of one communicator by order alone.
TEST(Links, AreNamedAlikeByBothEndsAndToldApart) {
  for (const int extent : {2, 3, 4, 5, 6, 8}) {
    const Shape shape{.tp = 2, .pp = extent};
    for (int rank = 0; rank < shape.size(); ++rank) {
      const int stage = mesh::coordinates(shape, rank).pp;
      for (int distance = 1; distance <= 3; ++distance) {
        SCOPED_TRACE(fmt::format("rank {} of pp={}, distance {}", rank, extent, distance));
        const LinkKind link = link_kind(shape, rank, Axis::pp, distance);
        const LinkKind back = link_kind(shape, rank, Axis::pp, -distance);
        const int peer = mesh::neighbour(shape, rank, Axis::pp, distance);
        EXPECT_EQ(link, link_kind(shape, peer, Axis::pp, -distance));
        // A pipeline does not wrap; the rank at the end of an odd ring may have two alike.
        const bool two_neighbours = distance == 1 && stage > 0 && stage + 1 < extent;
        const bool one_peer = distance < extent && 2 * distance % extent == 0;
        if (two_neighbours || one_peer) {
          EXPECT_NE(link, back);
        }
      }
    }
  }
}

CommunicatorPlan plan_of(const Shape& shape) {
  return communicator_plan(
      workloads::strong({.model = workloads::load_model("tiny"),
                         .options = workloads::options_of("microbatch=1 microbatches=16")},
                        shape));
}

TEST(CommunicatorPlans, OneOfEachAxisAndStreamAndTwoOfAPipeline) {
  const CommunicatorPlan plan = plan_of({.tp = 2, .dp = 2, .pp = 4});
  EXPECT_EQ(plan.collectives.size(), 2U);  // tp on compute, dp on its own stream
  ASSERT_EQ(plan.links.size(), 2U);
  EXPECT_EQ(plan.links[0].parity, 0);
  EXPECT_EQ(plan.links[1].parity, 1);
  EXPECT_EQ(plan_of({.pp = 2}).links.size(), 1U);
  EXPECT_TRUE(plan_of({}).collectives.empty());
  EXPECT_TRUE(plan_of({}).links.empty());
}

/// The plan for messages `hops` further on and for those from as far back, on streams[i].
CommunicatorPlan plan_of_hops(int ranks, const std::vector<int>& hops,
                              const std::vector<program::StreamId>& streams = {0, 0, 0}) {
  using enum program::Direction;
  Sketch sketch;
  const program::Slice from = sketch.buffer<float>(1), to = sketch.buffer<float>(1);
  for (std::size_t i = 0; i < hops.size(); ++i) {
    sketch.emit(
        program::Exchange{{{send, Axis::dp, hops[i], from}, {receive, Axis::dp, -hops[i], to}}},
        streams[i]);
  }
  return communicator_plan(sketch.on({.dp = ranks}));
}

TEST(CommunicatorPlans, OneCarriesTheMessagesOfManyLinks) {
  const CommunicatorPlan joined = plan_of_hops(8, {1, 2, 5});
  ASSERT_EQ(joined.links.size(), 1U);
  EXPECT_EQ(joined.links[0], (LinkKind{.axis = Axis::dp, .distance = 0, .parity = 0}));
  for (int rank = 0; rank < 8; ++rank) {
    for (const int offset : {1, -2, 5}) {
      EXPECT_EQ(joined.carrier(link_kind({.dp = 8}, rank, Axis::dp, offset)), joined.links[0]);
    }
  }
  EXPECT_EQ(plan_of_hops(8, {1, -1}).links.size(), 1U);
  // Two links between the same ranks: ops correspond, and tell them apart.
  EXPECT_EQ(plan_of_hops(4, {1, 2, -2}).links.size(), 1U);
  // Messages of several streams are kept apart.
  EXPECT_TRUE(plan_of_hops(8, {1, 2, 5}, {0, 0, 1}).joined.empty());
}

/// The second of two ranks sends first what the first one receives last: order tells nothing.
TEST(CommunicatorPlans, OpsThatDoNotCorrespondKeepTwoLinksBetweenTheSameRanksApart) {
  using enum program::Direction;
  program::ProgramSet set{.mesh = {.dp = 2}, .programs = {}, .program_of_rank = {0, 1}};
  for (const program::Direction direction : {send, receive}) {
    Sketch sketch;
    const program::Slice buffer = sketch.buffer<float>(1);
    for (const int offset : {1, -1}) {
      sketch.emit(program::Exchange{{{direction, Axis::dp, offset, buffer}}});
    }
    set.programs.push_back(sketch.program());
  }
  EXPECT_TRUE(communicator_plan(set).joined.empty());
  EXPECT_EQ(communicator_plan(set).links.size(), 2U);
}

/// NCCL plays the kernels of several communicators on one stream one after the other.
void expect_one_communicator_per_exchange(const program::ProgramSet& set, const std::string& what) {
  const CommunicatorPlan plan = communicator_plan(set);
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    for (const program::Program* section : set.of(rank).sections()) {
      for (const program::Op& op : section->ops) {
        const auto* const exchange = std::get_if<program::Exchange>(&op.payload);
        if (exchange == nullptr) continue;
        std::set<LinkKind> carriers;
        for (const program::Transfer& at : exchange->transfers) {
          carriers.insert(plan.carrier(link_kind(set.mesh, rank, at.axis, at.offset)));
        }
        ASSERT_LE(carriers.size(), 1U) << what << ", rank " << rank;
      }
    }
  }
}

/// A model whose numbers `ranks` divide: 2, 3, 4 or 8.
workloads::Request divisible(int ranks) {
  return {.model = workloads::test_model(
              "hidden=96 ffn=192 heads=24 head_size=4 sequence=48 vocabulary=96 layers=" +
              std::to_string(ranks))};
}

/// Tries each axis alone and in pairs on one rank count, with the options that exchange most.
void expect_of_training(const workloads::Workload& workload, int ranks, int& tried) {
  // A stage of infer hands on to one and receives from another in one op, on two streams: each
  // neighbour has a communicator of its own.
  const bool has_pairs_of_streams = workload.name == "infer" || workload.name == "serve";
  std::vector<Shape> shapes{{.tp = ranks}, {.pp = ranks}, {.cp = ranks}, {.dp = ranks}};
  if (ranks % 2 == 0) {
    shapes.push_back({.tp = 2, .cp = ranks / 2});
    shapes.push_back({.tp = 2, .pp = ranks / 2});
    shapes.push_back({.cp = ranks / 2, .pp = 2});
  }
  for (const Shape& shape : shapes) {
    if (has_pairs_of_streams && shape.pp > 1) continue;
    for (const workloads::Options& options :
         {workloads::Options{}, {{"sequence_parallel", "on"}, {"ring", "on"}}}) {
      workloads::Request base = divisible(ranks);
      base.options = options;
      try {
        const workloads::Request request = workload.scale(base, shape, workloads::Scaling::strong);
        const program::ProgramSet set = workload.build(request);
        expect_one_communicator_per_exchange(
            set, fmt::format("{} {}", workload.name, mesh::to_text(shape)));
        ++tried;
      } catch (const base::UsageError&) {
        continue;  // a mesh or an option that the workload does not have
      }
    }
  }
}

void expect_of_bench(const workloads::Workload& workload, int ranks) {
  std::vector<workloads::Options> all{{}};
  if (workload.name == "collectives") {
    all = {{{"op", "sendrecv"}, {"sizes", "4KiB"}},
           {{"implementation", "ring"}, {"sizes", "4KiB"}}};
  } else if (workload.name == "p2p") {
    all = {{{"pairs", "all"}}, {{"pairs", "neighbours"}}};
  }
  for (const workloads::Options& options : all) {
    workloads::Request request = divisible(ranks);
    request.mesh.dp = ranks;
    request.options = options;
    for (int batch = 0; batch < workload.bench.batches(request); ++batch) {
      expect_one_communicator_per_exchange(workload.bench.build(request, batch).set,
                                           fmt::format("{} on {}", workload.name, ranks));
    }
  }
}

TEST(CommunicatorPlans, AnExchangeTakesOneCommunicatorInEveryWorkload) {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const workloads::Workload& workload : workloads::registry()) {
      int tried = 0;
      if (workload.build != nullptr) {
        expect_of_training(workload, ranks, tried);
        EXPECT_GT(tried, 0) << workload.name << " on " << ranks;
      } else {
        expect_of_bench(workload, ranks);
      }
    }
  }
}

TEST(CommunicatorPlans, PairsOfAllRanksTakeOne) {
  const workloads::Workload& p2p = workloads::find_workload("p2p");
  for (const int ranks : {4, 7, 16, 64}) {
    const workloads::Request request{.mesh = {.dp = ranks}};
    EXPECT_EQ(communicator_plan(p2p.bench.build(request, 0).set).links.size(), 1U) << ranks;
  }
}

}  // namespace
}  // namespace isoscale::executor::cuda
