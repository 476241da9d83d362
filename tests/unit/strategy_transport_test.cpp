// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Option transport: the same ops on the same bytes; what travels over tp and between stages lies in
// symmetric memory, and nothing else does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/error.hpp"
#include "program/check.hpp"
#include "program/facts.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads {
namespace {

using program::Collective;
using program::Exchange;
using program::Space;
using program::Transport;

program::ProgramSet build(Options options, const mesh::Shape& mesh, Keep keep = Keep::nothing) {
  const Model model{.name = "transport",
                    .source = "test",
                    .hidden = 32,
                    .ffn = 64,
                    .heads = 8,
                    .kv_heads = 8,
                    .head_size = 4,
                    .layers = 8,
                    .sequence = 16,
                    .vocabulary = 64};
  options.insert({{"microbatch", "2"}, {"microbatches", "8"}});
  const Workload& hybrid = find_workload("hybrid");
  Request request =
      hybrid.scale({.model = model, .options = std::move(options)}, mesh, Scaling::strong);
  request.keep = keep;
  return hybrid.build(request);
}

/// Buffers that ops touch by a transport, and how many ops travel by it.
struct Travel {
  std::set<program::BufferId> buffers{};
  std::size_t ops = 0;
};
Travel travel_of(const program::RankProgram& program, Transport transport) {
  Travel travel;
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) {
      if (const auto* collective = std::get_if<Collective>(&op.payload)) {
        if (collective->transport != transport) continue;
        ++travel.ops;
        travel.buffers.insert({collective->send.buffer, collective->receive.buffer});
      } else if (const auto* exchange = std::get_if<Exchange>(&op.payload)) {
        if (exchange->transport != transport) continue;
        ++travel.ops;
        for (const auto& transfer : exchange->transfers) {
          travel.buffers.insert(transfer.slice.buffer);
        }
      }
    }
  }
  return travel;
}

TEST(StrategyTransport, MovesWhatTravelsToSymmetricMemoryAndNothingElse) {
  const std::vector<Options> sets{{},
                                  {{"sequence_parallel", "on"}, {"chunks", "2"}},
                                  {{"sequence_parallel", "on"}, {"ring", "on"}},
                                  {{"tp_output", "gather"}, {"handover", "scattered"}},
                                  {{"schedule", "zb-h1"}, {"recompute", "full"}}};
  for (const Options& options : sets) {
    Options with = options;
    with["transport"] = "symmetric";
    const mesh::Shape mesh{.tp = 2, .dp = 2, .pp = 2};
    const program::ProgramSet plain = build(options, mesh), moved = build(with, mesh);
    ASSERT_EQ(plain.programs.size(), moved.programs.size());
    program::check(moved);
    for (std::size_t i = 0; i < plain.programs.size(); ++i) {
      const auto &one = plain.programs[i], &other = moved.programs[i];
      const Travel travel = travel_of(other, Transport::symmetric);
      EXPECT_GT(travel.ops, 0U);
      EXPECT_EQ(travel_of(one, Transport::symmetric).ops, 0U);
      ASSERT_EQ(one.buffers.size(), other.buffers.size());
      for (program::BufferId id = 0; id < one.buffers.size(); ++id) {
        EXPECT_EQ(other.buffers[id].space,
                  travel.buffers.contains(id) ? Space::symmetric : one.buffers[id].space);
      }
      EXPECT_EQ(one.step().ops.size(), other.step().ops.size());
      const program::Facts a = program::facts(one, mesh), b = program::facts(other, mesh);
      EXPECT_EQ(a.flop.value(), b.flop.value());
      ASSERT_EQ(a.traffic.size(), b.traffic.size());
      for (std::size_t t = 0; t < a.traffic.size(); ++t) {
        EXPECT_EQ(a.traffic[t].axes, b.traffic[t].axes);
        EXPECT_EQ(a.traffic[t].sent, b.traffic[t].sent);
      }
    }
  }
}

TEST(StrategyTransport, PutsWhatKernelsReachAtTheSamePlacesOnAllRanksOfTp) {
  const mesh::Shape mesh{.tp = 4, .pp = 2};
  const program::ProgramSet set = build({{"transport", "symmetric"},
                                         {"sequence_parallel", "on"},
                                         {"ring", "on"},
                                         {"vocabulary", "on"}},
                                        mesh, Keep::observables);
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const program::RankProgram &mine = set.of(rank), &first = set.of(rank / 4 * 4);
    ASSERT_EQ(mine.buffers.size(), first.buffers.size());
    for (program::BufferId id = 0; id < mine.buffers.size(); ++id) {
      if (mine.buffers[id].space != Space::symmetric) continue;
      EXPECT_EQ(mine.buffers[id].offset, first.buffers[id].offset) << rank << ", " << id;
    }
  }
  EXPECT_NE(&set.of(0), &set.of(1));  // for each observes logits in an order of its own
}

TEST(StrategyTransport, LeavesGradientsOverDpToNccl) {
  const program::ProgramSet set = build({{"transport", "symmetric"}}, {.tp = 2, .dp = 2});
  std::size_t reductions = 0;
  for (const program::Op& op : set.of(0).step().ops) {
    const auto* const collective = std::get_if<Collective>(&op.payload);
    if (collective == nullptr) continue;
    const bool is_tp = collective->axes == mesh::AxisSet{mesh::Axis::tp};
    EXPECT_EQ(collective->transport, is_tp ? Transport::symmetric : Transport::nccl);
    reductions += is_tp ? 0 : 1;
  }
  EXPECT_GT(reductions, 0U);
}

TEST(StrategyTransport, ChangesNothingWhereNothingTravels) {
  for (const mesh::Shape& mesh : {mesh::Shape{}, mesh::Shape{.dp = 4}}) {
    const program::ProgramSet set = build({{"transport", "symmetric"}}, mesh);
    EXPECT_EQ(set.of(0).arena_bytes[static_cast<std::size_t>(Space::symmetric)], 0U);
    EXPECT_EQ(travel_of(set.of(0), Transport::symmetric).ops, 0U);
  }
}

TEST(StrategyTransport, IsFreeOfDeadlockOn64Ranks) {
  for (const mesh::Shape& mesh :
       {mesh::Shape{.tp = 8, .pp = 8}, mesh::Shape{.tp = 4, .dp = 4, .pp = 4}}) {
    program::check(build({{"transport", "symmetric"}, {"sequence_parallel", "on"}}, mesh));
  }
}

TEST(StrategyTransport, OfMessagesHasNoAllToAll) {
  const Workload& p2p = find_workload("p2p");
  Request request{.mesh = {.dp = 4}, .options = {{"transport", "symmetric"}}};
  std::set<std::string> kinds;
  std::size_t puts = 0;
  for (int batch = 0; batch < p2p.bench.batches(request); ++batch) {
    const Bench bench = p2p.bench.build(request, batch);
    program::check(bench.set);
    for (const RowSpec& row : bench.rows) {
      kinds.insert(row.text.at("kind"));
      EXPECT_EQ(row.text.at("transport"), "symmetric");
    }
    for (const program::RankProgram& program : bench.set.programs) {
      const Travel travel = travel_of(program, Transport::symmetric);
      puts += travel.ops;
      EXPECT_EQ(travel_of(program, Transport::nccl).ops, 0U);
      for (const program::BufferId id : travel.buffers) {
        EXPECT_EQ(program.buffers[id].space, Space::symmetric);
      }
    }
  }
  EXPECT_GT(puts, 0U);
  EXPECT_THAT(kinds,
              testing::UnorderedElementsAre("latency", "bandwidth", "bidirectional", "bisection"));
  request.options["kinds"] = "latency,all_to_all";
  EXPECT_THROW(static_cast<void>(p2p.bench.batches(request)), base::UsageError);
}

}  // namespace
}  // namespace isoscale::workloads
