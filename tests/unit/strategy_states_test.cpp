// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// What sharding (ZeRO) and offloading move and keep, by formula.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <set>
#include <string>

#include "base/error.hpp"
#include "program/check.hpp"
#include "program/facts.hpp"
#include "program/operands.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t layers = 4, hidden = 16, psi = layers * 12 * hidden * hidden;

/// 12 h^2 parameters a layer, one bucket a layer (in f32) unless told otherwise.
Request request_of(const Options& options, int microbatches, Precision precision = Precision::f32) {
  Request request{.model = {.name = "small",
                            .source = "test",
                            .hidden = hidden,
                            .ffn = 4 * hidden,
                            .heads = 8,
                            .kv_heads = 8,
                            .head_size = 2,
                            .gated_mlp = false,
                            .layers = layers,
                            .sequence = 4,
                            .vocabulary = 32},
                  .precision = precision,
                  .options = options};
  request.options.insert({{"microbatch", "2"}, {"bucket", std::to_string(4 * psi / layers)}});
  request.options["microbatches"] = std::to_string(microbatches);
  return request;
}

program::ProgramSet build(const Request& base, const mesh::Shape& mesh) {
  const Workload& hybrid = find_workload("hybrid");
  return hybrid.build(hybrid.scale(base, mesh, Scaling::weak));
}

program::Facts facts_of(const Request& base, const mesh::Shape& mesh) {
  const program::ProgramSet set = build(base, mesh);
  return program::facts(set.of(0), mesh);
}

std::uint64_t sent(const program::Facts& facts) {
  std::uint64_t sum = 0;
  for (const program::Traffic& entry : facts.traffic) sum += entry.sent.value();
  return sum;
}

std::uint64_t of_role(const program::Facts& facts, program::Role role) {
  return facts.peak_of_role[static_cast<std::size_t>(role)].value();
}

TEST(ZeroTest, VolumeOfAStepFollowsThePaper) {
  // arXiv 1910.02054, section 7: all-reduce 2 psi; stages 1 and 2 a reduce-scatter and an
  // all-gather, 2 psi; stage 3 one more all-gather, 3 psi. What is done in each microbatch counts
  // as often: the reduce-scatter of stages 2 and 3, the all-gathers of stage 3.
  for (const int dp : {2, 4, 8}) {
    for (const int m : {1, 2, 5}) {
      const mesh::Shape mesh{.dp = dp};
      const auto part = static_cast<std::uint64_t>(dp - 1) * psi * 4 / static_cast<unsigned>(dp);
      const auto volume = [&](const char* zero) {
        return sent(facts_of(request_of({{"zero", zero}}, m), mesh));
      };
      const auto times = static_cast<std::uint64_t>(m);
      EXPECT_EQ(volume("0"), 2 * part) << dp << " " << m;
      EXPECT_EQ(volume("1"), 2 * part) << dp << " " << m;
      EXPECT_EQ(volume("2"), (times + 1) * part) << dp << " " << m;
      EXPECT_EQ(volume("3"), 3 * times * part) << dp << " " << m;
    }
  }
}

TEST(ZeroTest, MemoryOfARankFollowsTheFormula) {
  // Adam in bf16: 2 psi bytes of weights, 4 psi of gradients, which accumulate in f32, 4 psi of
  // masters and 8 psi of moments.
  for (const std::uint64_t dp : {2U, 4U, 8U}) {
    const mesh::Shape mesh{.dp = static_cast<int>(dp)};
    for (const std::uint64_t zero : {0U, 1U, 2U, 3U}) {
      const auto facts = facts_of(
          request_of({{"zero", std::to_string(zero)}, {"optimizer", "adam"}, {"bucket", "6144"}}, 2,
                     Precision::bf16),
          mesh);
      const auto share = [&](std::uint64_t bytes, std::uint64_t from) {
        return zero >= from ? bytes * psi / dp : bytes * psi;
      };
      EXPECT_EQ(of_role(facts, program::Role::weight), share(2, 3)) << zero;
      EXPECT_EQ(of_role(facts, program::Role::gradient), share(4, 2)) << zero;
      EXPECT_EQ(of_role(facts, program::Role::master), share(4, 1)) << zero;
      const std::uint64_t moments = of_role(facts, program::Role::optimizer);
      EXPECT_GE(moments, share(8, 1)) << zero;
      EXPECT_LE(moments, share(8, 1) + 16 * 4 * layers) << zero;  // powers: 8 bytes a bucket
    }
  }
}

/// Buffers of workspace, of a type and size, that the step uses.
std::size_t count_buffers(const program::RankProgram& program, program::DType type,
                          std::uint64_t count) {
  std::set<program::BufferId> used;
  for (const program::Op& op : program.step().ops) {
    program::for_each_slice(
        op.payload, [&](const program::Slice& slice, program::Mode) { used.insert(slice.buffer); });
  }
  std::size_t found = 0;
  for (const program::BufferId id : used) {
    const program::Buffer& buffer = program.buffers[id];
    if (buffer.role == program::Role::workspace && buffer.space == program::Space::device &&
        buffer.dtype == type && buffer.count == count) {
      ++found;
    }
  }
  return found;
}

TEST(ZeroTest, KeepsAsManyGatheredBucketsAsArePrefetched) {
  for (const std::size_t prefetch : {0U, 1U, 3U}) {
    const program::ProgramSet set =
        build(request_of({{"zero", "3"},
                          {"prefetch", std::to_string(prefetch)},
                          {"gather_bucket", std::to_string(2 * psi / layers)}},
                         3, Precision::bf16),
              {.dp = 2});
    EXPECT_EQ(count_buffers(set.of(0), program::DType::bf16, psi / layers), prefetch + 1);
    EXPECT_EQ(count_buffers(set.of(0), program::DType::f32, psi / layers), 2U);
  }
}

TEST(ZeroTest, BucketsArePaddedToEqualParts) {
  const mesh::Shape mesh{.dp = 5};
  const auto facts = facts_of(request_of({{"zero", "2"}}, 1), mesh);
  const std::uint64_t of_layer = psi / layers;  // 3072, not a multiple of 5
  const std::uint64_t part = (of_layer + 4) / 5;
  EXPECT_EQ(of_role(facts, program::Role::gradient), layers * part * 4);
  EXPECT_EQ(sent(facts), 2 * layers * part * 4 * 4);
}

TEST(ZeroTest, WithoutReplicasItIsNothing) {
  for (const char* zero : {"1", "2", "3"}) {
    const program::ProgramSet set = build(request_of({{"zero", zero}}, 2), {.tp = 2});
    const program::ProgramSet plain = build(request_of({}, 2), {.tp = 2});
    EXPECT_EQ(set.of(0).step().ops.size(), plain.of(0).step().ops.size());
  }
}

TEST(ZeroTest, HasItsOwnStreamsOnlyWithOverlap) {
  const program::ProgramSet off =
      build(request_of({{"zero", "3"}, {"overlap", "off"}}, 2), {.dp = 2});
  EXPECT_EQ(off.of(0).streams.size(), 1U);
  const program::ProgramSet on = build(request_of({{"zero", "3"}}, 2), {.dp = 2});
  EXPECT_THAT(on.of(0).streams, ::testing::UnorderedElementsAre("compute", "dp", "states"));
}

TEST(OffloadTest, CopiesWhatTheFormulaSays) {
  // Each copy reads and writes. Weights come for each pass of each microbatch and go back once;
  // where they have no masters they come once more to be updated.
  for (const std::uint64_t m : {1U, 2U, 5U}) {
    const int microbatches = static_cast<int>(m);
    const Options weights{{"offload", "weights"}, {"optimizer", "adam"}};
    const auto f32 = facts_of(request_of(weights, microbatches), {});
    EXPECT_EQ(f32.copied.value(), 2 * (2 * m + 2) * psi * 4);
    const auto bf16 = facts_of(request_of(weights, microbatches, Precision::bf16), {});
    EXPECT_EQ(bf16.copied.value(), 2 * (2 * m + 1) * psi * 2);
    // Masters and two moments come and go once a step.
    const Options optimizer{{"offload", "optimizer"}, {"optimizer", "adam"}};
    const auto states = facts_of(request_of(optimizer, microbatches, Precision::bf16), {});
    EXPECT_EQ(states.copied.value(), 2 * 2 * psi * (4 + 8));
  }
}

TEST(OffloadTest, LeavesTheDeviceTwoBuffers) {
  const auto weights = build(request_of({{"offload", "weights"}}, 2, Precision::bf16), {}).of(0);
  // Of a layer in use and the one that comes, and of two buckets under update, here of two layers
  // (a bucket of f32 bytes holds one layer).
  EXPECT_EQ(count_buffers(weights, program::DType::bf16, psi / layers), 4U);
  const program::Facts facts = program::facts(weights, {});
  EXPECT_EQ(of_role(facts, program::Role::weight), 2 * psi);
  EXPECT_EQ(facts.peak_live[static_cast<std::size_t>(program::Space::pinned)].value(), 2 * psi);
}

TEST(OffloadTest, ManagedMemoryIsAdvisedAndNotCopied) {
  for (const char* what : {"weights", "optimizer"}) {
    const program::ProgramSet set = build(
        request_of({{"offload", what}, {"offload_memory", "managed"}, {"optimizer", "adam"}}, 2),
        {});
    EXPECT_EQ(program::facts(set.of(0), {}).copied.value(), 0U) << what;
    std::size_t advices = 0;
    for (const program::Op& op : set.of(0).step().ops) {
      if (std::holds_alternative<program::Advise>(op.payload)) ++advices;
    }
    // One a layer and pass of each of two microbatches; or two moments of four buckets in and out.
    EXPECT_EQ(advices, std::string{what} == "weights" ? 2 * 2 * layers : 2 * 2 * layers) << what;
  }
}

TEST(StatesCheckTest, SixtyFourRanksAreFreeOfDeadlock) {
  for (const mesh::Shape mesh : {mesh::Shape{.tp = 4, .dp = 4, .pp = 4},
                                 mesh::Shape{.tp = 2, .dp = 8, .pp = 4}, mesh::Shape{.dp = 64}}) {
    for (const Options& options :
         {Options{{"zero", "1"}}, Options{{"zero", "2"}, {"schedule", "zb-h1"}},
          Options{{"zero", "3"}, {"prefetch", "2"}}, Options{{"zero", "3"}, {"overlap", "off"}},
          Options{{"zero", "2"}, {"offload", "weights"}},
          Options{{"zero", "3"}, {"offload", "optimizer"}, {"optimizer", "adam"}}}) {
      EXPECT_NO_THROW(program::check(build(request_of(options, 4), mesh))) << mesh::to_string(mesh);
    }
  }
}

void expect_refused(const Request& base, const mesh::Shape& mesh, const std::string& what,
                    const std::string& instead) {
  try {
    static_cast<void>(build(base, mesh));
    FAIL() << "not refused: " << what;
  } catch (const base::UsageError& error) {
    EXPECT_THAT(std::string{error.what()}, AllOf(HasSubstr(what), HasSubstr(instead)));
  }
}

TEST(StatesRefusalTest, SaysWhatExcludesWhatAndWhatWorks) {
  const mesh::Shape dp{.dp = 4};
  expect_refused(request_of({{"zero", "3"}, {"offload", "weights"}}, 2), dp, "dp=4", "zero=2");
  expect_refused(request_of({{"zero", "3"}, {"reduce_bucket", "1MiB"}}, 2), dp,
                 "reduce_bucket=1MiB", "gather_bucket=1MiB");
  expect_refused(
      request_of({{"zero", "1"}, {"offload", "weights"}, {"offload_memory", "managed"}}, 2), dp,
      "zero=1", "offload_memory=pinned");
  expect_refused(request_of({{"offload", "optimizer"}}, 2), {}, "nothing to offload",
                 "optimizer=adam");
}

}  // namespace
}  // namespace isoscale::workloads
