// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh, schedule and option computes what one rank computes: a covering set of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "program/check.hpp"
#include "program/outline.hpp"
#include "tests/mpi/twin_cases.hpp"

namespace isoscale::runner {
namespace {

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
  const auto runs = covering_levels();
  const auto meshes = meshes_of(ranks.world.size());
  // With many meshes each takes every other run, so that the test stays quick.
  constexpr std::size_t few_meshes = 6;
  const std::size_t stride = meshes.size() > few_meshes ? 2 : 1;
  std::size_t cases = 0;
  for (std::size_t m = 0; m < meshes.size(); ++m) {
    std::size_t turn = m;
    for (std::size_t run = m % stride; run < runs.size(); run += stride) {
      // The next model that this mesh divides: over a mesh each has its turns.
      for (std::size_t skipped = 0; skipped < models.size(); ++skipped) {
        const auto point = twin_case(meshes[m], models[turn++ % models.size()], runs[run]);
        if (point.empty()) continue;
        expect_equal_to_one_rank(ranks, point.front());
        ++cases;
        break;
      }
    }
  }
  EXPECT_EQ(cases, meshes.size() * runs.size() / stride);
}

/// Meshes with every axis at least once, tp at most 2 so that shards stay large.
std::vector<mesh::Shape> large_meshes(int ranks) {
  switch (ranks) {
    case 2:
      return {{.tp = 2}, {.dp = 2}, {.pp = 2}};
    case 4:
      return {{.tp = 2, .dp = 2}, {.tp = 2, .pp = 2}, {.dp = 2, .pp = 2}};
    default:
      return {{.tp = 2, .dp = ranks / 4, .pp = 2}, {.tp = 2, .pp = ranks / 2}};
  }
}

/// With microbatches of two samples, an activation is 128 x 128.
workloads::Model large_model(int layers) {
  return {.name = "large",
          .source = "test",
          .hidden = 128,
          .ffn = 128,
          .heads = 8,
          .kv_heads = 8,
          .head_size = 16,
          .layers = layers,
          .sequence = 64,
          .vocabulary = 128};
}

TEST(Messages, AboveTheEagerLimitArriveWhole) {
  // Not the twin: activations of 128 rows and columns in f64, and buckets of as many bytes.
  constexpr std::uint64_t least = std::uint64_t{128} * 1024;
  const Ranks ranks;
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  for (const mesh::Shape& mesh : large_meshes(ranks.world.size())) {
    for (const char* schedule : {"1f1b", "gpipe"}) {
      workloads::Request base{.model = large_model(mesh.pp),
                              .precision = program::Precision::f64,
                              .options = {{"microbatch", "2"},
                                          {"microbatches", "4"},
                                          {"bucket", "128KiB"},
                                          {"schedule", schedule}},
                              .keep = workloads::Keep::observables};
      const workloads::Request request = hybrid.scale(base, mesh, workloads::Scaling::strong);
      const program::ProgramSet set = hybrid.build(request);
      program::check(set);
      std::size_t messages = 0;
      for (const program::Outline& outline :
           program::outline(set, program::Section::step).outlines) {
        for (const program::OutlineOp& op : outline.ops) {
          if (!program::communicates(op.kind)) continue;
          ++messages;
          EXPECT_GE(op.bytes, least) << program::name(op.kind);
        }
      }
      EXPECT_GE(messages, 4U);
      for (executor::Executor* executor : {ranks.folded.get(), ranks.threads.get()}) {
        const Verdict verdict = verify_programs(set, hybrid, request, *executor, ranks.world);
        EXPECT_TRUE(verdict.ok) << mesh::to_string(mesh) << " " << schedule << verdict.detail;
        EXPECT_LT(verdict.difference.value_or(1), 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
