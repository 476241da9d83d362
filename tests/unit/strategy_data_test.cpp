// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// What replicas send and hold, against formulas written out here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "base/error.hpp"
#include "program/check.hpp"
#include "program/facts.hpp"
#include "tests/unit/small_model.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads {
namespace {

using program::OpKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double sequence = 4, samples = 2, hidden = 16, f32 = 4;
/// Of a layer: 4 h^2 of attention and 8 h^2 of the MLP.
constexpr double layer_parameters = 12 * hidden * hidden;
constexpr double activation_bytes = sequence * samples * hidden * f32;

/// Weak scaling: `microbatches` are those of a replica.
Request scaled(const Request& base, const mesh::Shape& mesh) {
  return find_workload("hybrid").scale(base, mesh, Scaling::weak);
}
program::ProgramSet build(const Request& base, const mesh::Shape& mesh) {
  return find_workload("hybrid").build(scaled(base, mesh));
}

/// Bytes put on links along dp in a step, all ranks together, by kind.
std::map<OpKind, double> sent_by_kind(const program::ProgramSet& set) {
  std::map<OpKind, double> sent;
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    for (const program::Traffic& entry : program::facts(set.of(rank), set.mesh).traffic) {
      if (!entry.axes.contains(mesh::Axis::dp)) continue;
      sent[entry.kind] += static_cast<double>(entry.sent.value());
    }
  }
  return sent;
}

int calls(const program::RankProgram& program, program::Phase phase, OpKind kind) {
  return static_cast<int>(std::ranges::count_if(program.step().ops, [&](const program::Op& op) {
    return op.place.phase == phase && program::kind_of(op.payload) == kind;
  }));
}

double bytes_of(const program::RankProgram& program, program::Role role) {
  double bytes = 0;
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.role != role) continue;
    bytes += static_cast<double>(buffer.count * program::element_size(buffer.dtype));
  }
  return bytes;
}

TEST(DdpTest, ReducesEachBucketOnceHoweverManyMicrobatches) {
  for (const char* overlap : {"on", "off"}) {
    for (const int microbatches : {1, 2, 7}) {
      // A layer has four tensors, each of which fills a bucket.
      const Request base = small(3, microbatches, {{"overlap", overlap}, {"bucket", "1"}});
      const program::ProgramSet set = build(base, {.dp = 4});
      EXPECT_EQ(calls(set.of(0), program::Phase::gradient_reduction, OpKind::all_reduce), 3 * 4);
      // 2 (n - 1) / n of all gradients from each of n ranks.
      EXPECT_EQ(sent_by_kind(set).at(OpKind::all_reduce), 2 * 3 * 3 * layer_parameters * f32);
    }
  }
}

TEST(FunnelTest, SendsWhatGoesThroughTheFirstReplica) {
  for (const int n : {2, 4}) {
    for (const int microbatches : {1, 5}) {
      const program::ProgramSet set =
          build(small(2, microbatches, {{"strategy", "funnel"}}), {.dp = n});
      program::check(set);
      const double others = n - 1;
      const double parameters = 2 * layer_parameters * f32;
      const auto sent = sent_by_kind(set);
      // Inputs and output gradients are scattered, outputs gathered: of all replicas but the first.
      EXPECT_EQ(sent.at(OpKind::scatter), 2 * microbatches * others * activation_bytes);
      EXPECT_EQ(sent.at(OpKind::gather), microbatches * others * activation_bytes);
      EXPECT_EQ(sent.at(OpKind::reduce), others * parameters);
      EXPECT_EQ(sent.at(OpKind::broadcast), others * parameters);
      EXPECT_EQ(sent.size(), 4U);
    }
  }
}

TEST(FunnelTest, KeepsOptimizerStateAndInputsOnTheFirstReplicaAlone) {
  const int n = 4, microbatches = 3;
  Request base = small(2, microbatches, {{"strategy", "funnel"}, {"optimizer", "adam"}});
  const program::ProgramSet set = build(base, {.dp = n, .pp = 2});
  ASSERT_EQ(set.programs.size(), 4U);  // two stages, first replica and others
  const program::RankProgram& root = set.of(0);
  const program::RankProgram& other = set.of(n - 1);
  EXPECT_EQ(bytes_of(root, program::Role::input), n * microbatches * activation_bytes);
  EXPECT_EQ(bytes_of(other, program::Role::input), 0);
  EXPECT_GE(bytes_of(root, program::Role::optimizer), 2 * 2 * layer_parameters * f32);
  EXPECT_EQ(bytes_of(other, program::Role::optimizer), 0);
  EXPECT_EQ(calls(root, program::Phase::optimizer, OpKind::update), 1);
  EXPECT_EQ(calls(other, program::Phase::optimizer, OpKind::update), 0);
  for (const program::Op& op : root.step().ops) {
    const auto* collective = std::get_if<program::Collective>(&op.payload);
    EXPECT_TRUE(collective == nullptr || op.stream == 0) << "nothing overlaps";
  }
}

TEST(FunnelTest, ComputesWhatDdpComputes) {
  const mesh::Shape mesh{.tp = 2, .dp = 2, .pp = 2};
  double flop[2] = {0, 0};
  int i = 0;
  for (const char* strategy : {"ddp", "funnel"}) {
    const program::ProgramSet set = build(small(2, 4, {{"strategy", strategy}}), mesh);
    for (int rank = 0; rank < mesh.size(); ++rank) {
      flop[i] += program::facts(set.of(rank), mesh).flop.value();
    }
    ++i;
  }
  EXPECT_EQ(flop[0], flop[1]);
}

TEST(GradDtypeTest, HalvesTheBytesAndFillsBucketsByWhatTravels) {
  const int n = 4;
  const auto traffic = [&](const char* type) {
    // 32 h^2 bytes: 8 h^2 elements in f32, 16 h^2 in bf16.
    return build(small(4, 2, {{"grad_dtype", type}, {"bucket", "8192"}}), {.dp = n});
  };
  const program::ProgramSet wide = traffic("same"), narrow = traffic("bf16");
  const double parameters = 4 * layer_parameters;
  EXPECT_EQ(sent_by_kind(wide).at(OpKind::all_reduce), 2 * (n - 1) * parameters * f32);
  EXPECT_EQ(sent_by_kind(narrow).at(OpKind::all_reduce), 2 * (n - 1) * parameters * 2);
  // Tensors in order of backward: 4, 4, 1 and 3 h^2 a layer. Wide: (4 4) (1 3 4) (4 1 3) (4 4) ...
  const auto reductions = [](const program::ProgramSet& set) {
    return calls(set.of(0), program::Phase::gradient_reduction, OpKind::all_reduce);
  };
  EXPECT_EQ(reductions(wide), 6);
  EXPECT_EQ(reductions(narrow), 3);
  EXPECT_EQ(calls(narrow.of(0), program::Phase::gradient_reduction, OpKind::cast), 2 * 3);
}

TEST(CompressionTest, SendsTheLargestOfEachBlockWithTheirPlaces) {
  const int n = 4;
  struct Case {
    const char *ratio, *block;
    double block_size, kept;  ///< elements
  };
  for (const Case& c : {Case{"1", "1024", 1024, 11}, Case{"10", "100", 100, 10},
                        Case{"100", "64", 64, 64}, Case{"1", "10", 10, 1}}) {
    const program::ProgramSet set = build(small(1, 2,
                                                {{"compression", "topk"},
                                                 {"compression_ratio", c.ratio},
                                                 {"compression_block", c.block},
                                                 {"bucket", "1"}}),
                                          {.dp = n});
    program::check(set);
    double kept = 0;
    for (const double tensor : {4, 4, 1, 3}) {
      kept += std::ceil(tensor * hidden * hidden / c.block_size) * c.kept;
    }
    // Each of n ranks passes on the parts of all but one: an f32 value and an i32 place of each.
    const auto sent = sent_by_kind(set);
    EXPECT_EQ(sent.at(OpKind::all_gather), n * (n - 1) * kept * (4 + 4));
    EXPECT_EQ(sent.size(), 1U);
    // What has not been sent is kept beside the gradients.
    EXPECT_EQ(bytes_of(set.of(0), program::Role::gradient), 2 * layer_parameters * f32);
  }
}

TEST(PartitionTest, DealsByLargestRemainder) {
  using stack::distribute_by_weight;
  EXPECT_THAT(distribute_by_weight(8, {3, 1}, 1), ElementsAre(6, 2));
  EXPECT_THAT(distribute_by_weight(10, {1, 1, 1}, 1), ElementsAre(4, 3, 3));
  EXPECT_THAT(distribute_by_weight(10, {2.6, 2.7, 4.7}, 1), ElementsAre(2, 3, 5));
  EXPECT_THAT(distribute_by_weight(4, {100, 1, 1, 1}, 1), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(distribute_by_weight(9, {100, 1, 1}, 2), ElementsAre(5, 2, 2));
}

std::vector<int> microbatches_of(const Request& base, const mesh::Shape& mesh,
                                 const std::vector<double>& speeds = {}) {
  Request request = scaled(base, mesh);
  request.speed_of_rank = speeds;
  return stack::distribution_of(request).microbatches;
}

TEST(PartitionTest, FollowsSkewSpeedAndSchedule) {
  EXPECT_THAT(microbatches_of(small(2, 4, {}), {.dp = 3}), ElementsAre(4, 4, 4));
  EXPECT_THAT(microbatches_of(small(2, 5, {{"partition", "skewed:3"}}), {.dp = 3}),
              ElementsAre(9, 3, 3));
  EXPECT_THAT(microbatches_of(small(2, 5, {{"partition", "skewed:0.5"}}), {.dp = 3}),
              ElementsAre(3, 6, 6));
  const Request proportional = small(2, 4, {{"partition", "proportional"}});
  EXPECT_THAT(microbatches_of(proportional, {.dp = 2}), ElementsAre(4, 4));  // nobody has measured
  EXPECT_THAT(microbatches_of(proportional, {.dp = 2}, {30, 10}), ElementsAre(6, 2));
  // Ranks 0 and 1 are one replica: its slower rank counts.
  EXPECT_THAT(microbatches_of(proportional, {.tp = 2, .dp = 2}, {10, 90, 30, 30}),
              ElementsAre(2, 6));
  // Interleaved deals in turns of pp; the ranks of a replica are two apart.
  const Request turns =
      small(4, 8, {{"partition", "proportional"}, {"schedule", "interleaved"}, {"v", "2"}});
  EXPECT_THAT(microbatches_of(turns, {.dp = 2, .pp = 4}, {5, 1, 5, 1, 5, 1, 5, 1}),
              ElementsAre(12, 4));
}

TEST(PartitionTest, DealsTheSameBatch) {
  const mesh::Shape mesh{.dp = 4, .pp = 2};
  for (const char* partition : {"equal", "skewed:5", "skewed:0.2", "proportional"}) {
    Request request = scaled(small(2, 8, {{"partition", partition}}), mesh);
    request.speed_of_rank = {1, 5, 2, 2, 1, 5, 2, 2};
    const program::ProgramSet set = find_workload("hybrid").build(request);
    program::check(set);
    // Every microbatch is somewhere: forward and backward FLOP of all are those of equal parts.
    const program::ProgramSet equal = build(small(2, 8, {}), mesh);
    double flop = 0, expected = 0;
    for (int rank = 0; rank < mesh.size(); ++rank) {
      flop += program::facts(set.of(rank), mesh).flop.value();
      expected += program::facts(equal.of(rank), mesh).flop.value();
    }
    EXPECT_EQ(flop, expected) << partition;
    // Samples are numbered from 0 on without a gap.
    std::vector<int> seen(32, 0);
    for (int replica = 0; replica < mesh.dp; ++replica) {
      const mesh::Coordinates at{.dp = replica};
      const program::RankProgram& program = set.of(mesh::rank_at(mesh, at));
      for (const program::Op& op : program.setup.ops) {
        const auto* fill = std::get_if<program::Fill>(&op.payload);
        if (fill == nullptr) continue;
        if (program.buffers[fill->dst.buffer].role != program::Role::input) continue;
        const auto microbatch_size = static_cast<std::uint64_t>(sequence * samples * hidden);
        ++seen.at(fill->shard.first(at) / microbatch_size);
      }
    }
    EXPECT_EQ(std::ranges::count(seen, 1), 32) << partition;
  }
}

TEST(PartitionTest, SharesProgramsBetweenReplicasThatGetAsMuch) {
  EXPECT_EQ(build(small(2, 8, {}), {.dp = 8}).programs.size(), 1U);
  EXPECT_EQ(build(small(2, 8, {{"partition", "skewed:3"}}), {.dp = 8}).programs.size(), 3U);
  EXPECT_EQ(build(small(2, 10, {{"partition", "skewed:3"}}), {.dp = 8}).programs.size(), 2U);
}

void expect_refusal(const Request& base, const mesh::Shape& mesh, const auto& message) {
  try {
    (void)scaled(base, mesh);
    FAIL() << "not refused";
  } catch (const base::UsageError& error) {
    EXPECT_THAT(error.what(), message);
  }
}

TEST(RequireDataTest, RefusesWithTheNumbersAndTheNearestThatWorks) {
  using ::testing::AllOf;
  const mesh::Shape mesh{.dp = 4};
  for (const auto& [key, value] :
       {std::pair{"overlap", "on"}, std::pair{"partition", "skewed:2"},
        std::pair{"grad_dtype", "bf16"}, std::pair{"compression", "topk"}}) {
    expect_refusal(small(2, 8, {{"strategy", "funnel"}, {key, value}}), mesh,
                   AllOf(HasSubstr("strategy=funnel"), HasSubstr(std::string{key} + "=" + value)));
  }
  expect_refusal(small(2, 8, {{"compression", "topk"}, {"grad_dtype", "f16"}}), mesh,
                 AllOf(HasSubstr("compression=topk"), HasSubstr("grad_dtype=same")));
  expect_refusal(small(2, 8, {{"partition", "skew:2"}}), mesh, HasSubstr("skewed:X"));
  expect_refusal(small(2, 8, {{"partition", "skewed:-1"}}), mesh, HasSubstr("0.01 to 100"));
  // 4 microbatches over 4 replicas in shares 3 : 1 : 1 : 1 take 6, so 2 each at least.
  expect_refusal(small(2, 1, {{"partition", "skewed:3"}}), mesh,
                 AllOf(HasSubstr("deals 4 microbatches to dp=4"), HasSubstr("microbatches=2"),
                       HasSubstr("batch=16")));
  expect_refusal(small(2, 1, {{"partition", "proportional"}}), mesh, HasSubstr("microbatches=2"));
  expect_refusal(
      small(4, 4, {{"partition", "proportional"}, {"schedule", "interleaved"}, {"v", "2"}}),
      {.dp = 2, .pp = 4}, HasSubstr("microbatches=8"));
}

TEST(RequireDataTest, SaysThatAFunnelDoesNotOverlap) {
  const Request request = scaled(small(2, 8, {{"strategy", "funnel"}}), {.dp = 2});
  EXPECT_EQ(request.options.at("overlap"), "off");
}

}  // namespace
}  // namespace isoscale::workloads
