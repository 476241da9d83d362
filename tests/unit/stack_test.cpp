// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "program/check.hpp"
#include "stack_samples.hpp"

#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(StackTest, InitialValuesSpreadAsAskedForAndNeverMore) {
  for (std::uint64_t fan_in = 1; fan_in <= 70'000; fan_in += 1 + fan_in / 50) {
    const double wanted = 1 / std::sqrt(static_cast<double>(fan_in));
    const stack::Parameter parameter{.name = "", .shard = {}, .fan_in = fan_in};
    const program::Fill fill = stack::weight_fill({}, parameter, 1);
    EXPECT_LE(fill.range, 127);                                   // exact in bf16
    const double variance = fill.range * (fill.range + 1) / 3.0;  // of integers
    const double spread = std::ldexp(std::sqrt(variance), fill.exponent);
    EXPECT_LE(spread, wanted * (1 + 1e-12)) << fan_in;
    EXPECT_GE(spread, wanted * 0.98) << fan_in;
  }
}

TEST(StackTest, FlopOfALayerFollowsThePublishedFormula) {
  // 72 b s h^2 (1 + s / 6h), forward and backward, arXiv 2104.04473 appendix without recomputation.
  for (const char* name : {"gpt-125m", "gpt-1.3b", "gpt-6.7b", "gpt-175b"}) {
    Request base{.model = load_model(name),
                 .options = {{"microbatch", "2"}, {"microbatches", "3"}}};
    // The formula is that of attention as wide as the hidden state and an MLP of four times that.
    base.model.heads = base.model.kv_heads = base.model.hidden / base.model.head_size;
    base.model.ffn = 4 * base.model.hidden;
    const program::ProgramSet set = weak(base, {});
    const double flop = program::facts(set.programs[0], set.mesh).flop.value();
    const double b = 2, s = base.model.sequence, h = base.model.hidden;
    const double expected = 72 * b * s * h * h * (1 + s / (6 * h));
    EXPECT_NEAR(flop / (base.model.layers * 3), expected, 1e-9 * expected) << name;
  }
}

TEST(StackTest, EveryMeshOfAModelHasTheSameFlopInAll) {
  const Request base = small(4, 8);
  const double one = program::facts(weak(base, {}).programs[0], {}).flop.value();
  for (const mesh::Shape mesh : {mesh::Shape{.dp = 4}, mesh::Shape{.tp = 4}, mesh::Shape{.pp = 4},
                                 mesh::Shape{.tp = 2, .dp = 2, .pp = 2}}) {
    for (const char* output : {"reduce", "gather"}) {
      Request request = base;
      request.options["tp_output"] = output;
      const program::ProgramSet set = strong(request, mesh);
      EXPECT_DOUBLE_EQ(flop_in_all(set), one) << mesh::to_string(mesh) << " " << output;
    }
  }
}

TEST(StackTest, TrafficFollowsTheTextbook) {
  // numbers: dp all-reduces every gradient once; tp all-reduces 4 activations a layer and
  // microbatch; pp moves one activation per boundary, microbatch and direction.
  const Request base = small(4, 4);
  const double activation = 4 * 2 * 16 * 4;  // bytes: s * b * h * f32
  const auto bytes = [](const program::Facts& facts, program::OpKind kind) {
    double sum = 0;
    for (const program::Traffic& entry : facts.traffic) {
      if (entry.kind == kind) sum += static_cast<double>(entry.bytes.value());
    }
    return sum;
  };
  const mesh::Shape dp{.dp = 2}, tp{.tp = 2}, pp{.pp = 2};
  const program::Facts dp_facts = facts_of(strong(base, dp));
  EXPECT_EQ(bytes(dp_facts, program::OpKind::all_reduce), 4 * 12 * 16 * 16 * 4.0);
  const program::Facts tp_facts = facts_of(strong(base, tp));
  EXPECT_EQ(bytes(tp_facts, program::OpKind::all_reduce), 4 * 4 * 4 * activation);
  Request gather = base;
  gather.options["tp_output"] = "gather";
  const program::Facts g = facts_of(strong(gather, tp));
  // forward: context, projection output, inner (4 h wide), MLP output; backward: two all-reduces,
  // and the gathered inputs' gradients reduce-scattered.
  EXPECT_EQ(bytes(g, program::OpKind::all_gather), 4 * 4 * (1 + 1 + 4 + 1) * activation);
  EXPECT_EQ(bytes(g, program::OpKind::reduce_scatter), 4 * 4 * (1 + 4) * activation);
  EXPECT_EQ(bytes(g, program::OpKind::all_reduce), 4 * 4 * 2 * activation);
  const program::ProgramSet pipeline = strong(base, pp);
  std::uint64_t sent = 0;
  for (const program::Outline& outline :
       program::outline(pipeline, program::Section::step).outlines) {
    for (const program::OutlineTransfer& transfer : outline.transfers) {
      if (transfer.direction == program::Direction::send) sent += transfer.bytes;
    }
  }
  EXPECT_EQ(static_cast<double>(sent), 2 * 4 * activation);
}

TEST(StackTest, ParametersMatchTheModelAcrossEveryMesh) {
  const Request base = small(4, 4);
  for (const mesh::Shape mesh :
       {mesh::Shape{}, mesh::Shape{.tp = 4}, mesh::Shape{.tp = 2, .pp = 2}}) {
    const program::ProgramSet set = strong(base, mesh);
    std::uint64_t weights = 0;
    for (int rank = 0; rank < mesh.size(); ++rank) {
      for (const program::Buffer& buffer : set.of(rank).buffers) {
        if (buffer.role == program::Role::weight) weights += buffer.count;
      }
    }
    EXPECT_EQ(weights, 4U * 12 * 16 * 16) << mesh::to_string(mesh);
  }
}

TEST(BucketTest, AreWholeTensorsOfAtLeastTheSizeAskedFor) {
  std::vector<stack::Parameter> parameters(5);
  std::uint64_t offset = 0;
  for (auto& parameter : parameters) {
    parameter.rows = 10;
    parameter.columns = 10;
    parameter.offset = offset;
    offset += 100;
  }
  const auto buckets = stack::buckets_of(parameters, 600, 4);
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_EQ(buckets[0].count, 200U);
  EXPECT_EQ(buckets[1].offset, 200U);
  EXPECT_EQ(buckets[2].count, 100U);  // what remains
  EXPECT_EQ(stack::buckets_of(parameters, 1, 4).size(), 5U);
  EXPECT_EQ(stack::buckets_of(parameters, 1U << 30, 4).size(), 1U);
}

TEST(CheckTest, EveryMeshAndOptionIsFreeOfDeadlockAndRaces) {
  int cases = 0;
  for (int tp : {1, 2, 4}) {
    for (int dp : {1, 2, 4}) {
      for (int pp : {1, 2, 3, 4}) {
        for (const Options& options :
             {Options{}, Options{{"schedule", "gpipe"}, {"overlap", "off"}},
              Options{{"tp_output", "gather"}, {"input", "pinned"}},
              Options{{"vocabulary", "on"}, {"optimizer", "adam"}, {"bucket", "1024"}}}) {
          for (const int m : {1, 2, 7}) {
            EXPECT_NO_THROW(
                program::check(weak(small(2, m, options), {.tp = tp, .dp = dp, .pp = pp})))
                << "tp=" << tp << " dp=" << dp << " pp=" << pp << " m=" << m;
            ++cases;
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 3 * 3 * 4 * 4 * 3);
}

/// Each strategy plays on meshes of 64 ranks, with the options and schedules that it goes with.
TEST(CheckTest, StrategiesAreFreeOfDeadlockAndRacesOn64Ranks) {
  const auto expect_free = [](const Options& options, const std::vector<mesh::Shape>& meshes,
                              const std::vector<std::string>& schedules = {"1f1b"},
                              const std::vector<Precision>& precisions = {Precision::f32}) {
    for (const mesh::Shape& mesh : meshes) {
      ASSERT_EQ(mesh.size(), 64);
      for (const std::string& schedule : schedules) {
        for (const Precision precision : precisions) {
          Request request = request_of({.hidden = 256,
                                        .ffn = 1024,
                                        .heads = 16,
                                        .kv_heads = 16,
                                        .head_size = 16,
                                        .layers = 2 * mesh.pp,
                                        .sequence = 256,
                                        .vocabulary = 256},
                                       4 * mesh.dp, options, precision);
          request.options["schedule"] = schedule;
          EXPECT_NO_THROW(program::check(strong(request, mesh)))
              << mesh::to_string(mesh) << " " << name(precision) << " "
              << testing::PrintToString(request.options);
        }
      }
    }
  };
  const std::vector<mesh::Shape> dp{
      {.tp = 4, .dp = 4, .pp = 4}, {.tp = 2, .dp = 8, .pp = 4}, {.dp = 64}};
  const std::vector<mesh::Shape> rows{{.tp = 4, .dp = 4, .pp = 4},
                                      {.tp = 4, .cp = 2, .dp = 2, .pp = 4},
                                      {.tp = 2, .cp = 8, .pp = 4},
                                      {.cp = 32, .dp = 2},
                                      {.tp = 4, .cp = 16}};
  const std::vector<mesh::Shape> symmetric{{.tp = 8, .pp = 8}, {.tp = 4, .dp = 4, .pp = 4}};
  const std::vector<mesh::Shape> layers{
      {.tp = 8, .dp = 2, .pp = 4}, {.tp = 2, .dp = 4, .pp = 8}, {.tp = 4, .dp = 16}};
  const std::vector<std::string> any{"1f1b", "zb-h1", "interleaved", "gpipe"};
  const std::vector<Precision> narrow{Precision::bf16, Precision::fp8};
  expect_free({{"zero", "1"}}, dp);
  expect_free({{"zero", "2"}}, dp, {"zb-h1"});
  expect_free({{"zero", "3"}, {"prefetch", "2"}}, dp);
  expect_free({{"zero", "3"}, {"overlap", "off"}}, dp);
  expect_free({{"zero", "2"}, {"offload", "weights"}}, dp);
  expect_free({{"zero", "3"}, {"offload", "optimizer"}, {"optimizer", "adam"}}, dp);
  expect_free({{"sequence_parallel", "on"}}, rows, any);
  expect_free({{"sequence_parallel", "on"}, {"ring", "on"}, {"vocabulary", "on"}}, rows, any);
  expect_free({}, rows, any);
  expect_free({{"chunks", "2"}, {"overlap", "off"}}, rows, any);
  expect_free({{"transport", "symmetric"}, {"sequence_parallel", "on"}}, symmetric);
  for (const char* recompute : {"none", "selective", "full"}) {
    for (const char* output : {"reduce", "gather"}) {
      expect_free({{"elementwise", "on"}, {"recompute", recompute}, {"tp_output", output}}, layers,
                  {"1f1b", "gpipe"}, narrow);
    }
  }
}

TEST(ScaleTest, StrongScalingKeepsTheBatchAndTakesMicrobatchesFirst) {
  const Workload& dp = find_workload("dp");
  const Request base = small(4, 8);
  const auto at = [&](int ranks) {
    const Request request = dp.scale(base, {.dp = ranks}, Scaling::strong);
    return std::array{request.options.at("batch"), request.options.at("microbatch"),
                      request.options.at("microbatches")};
  };
  EXPECT_THAT(at(1), ::testing::ElementsAre("16", "2", "8"));
  EXPECT_THAT(at(4), ::testing::ElementsAre("16", "2", "2"));
  EXPECT_THAT(at(8), ::testing::ElementsAre("16", "2", "1"));
  EXPECT_THAT(at(16), ::testing::ElementsAre("16", "1", "1"));
  EXPECT_THROW((void)at(3), base::UsageError);
  EXPECT_THROW((void)at(32), base::UsageError);
}

TEST(ScaleTest, WeakScalingKeepsEveryRanksGemms) {
  const Workload& hybrid = find_workload("hybrid");
  const Request base = small(2, 4);
  const double one = facts_of(weak(base, {})).flop.value();
  for (const mesh::Shape mesh : {mesh::Shape{.dp = 3}, mesh::Shape{.tp = 4}, mesh::Shape{.pp = 4},
                                 mesh::Shape{.tp = 2, .dp = 2, .pp = 2}}) {
    const Request request = hybrid.scale(base, mesh, Scaling::weak);
    const program::ProgramSet set = hybrid.build(request);
    for (int rank = 0; rank < mesh.size(); ++rank) {
      EXPECT_EQ(facts_of(set, rank).flop.value(), one) << mesh::to_string(mesh);
    }
    // Every rank is as busy as the one, so ideal throughput is proportional to the ranks.
    EXPECT_DOUBLE_EQ(hybrid.work_per_step(request),
                     mesh.size() * hybrid.work_per_step(hybrid.scale(base, {}, Scaling::weak)));
  }
}

TEST(ScaleTest, GatheringNeedsAHiddenSizeThatDividesAlsoWhenTheModelGrows) {
  const Workload& tp = find_workload("tp");
  const auto limits = tp.limits(small(2, 4, {{"tp_output", "gather"}}), Scaling::weak);
  EXPECT_TRUE(mesh::violation({.tp = 3}, limits).has_value());
  EXPECT_FALSE(mesh::violation({.tp = 4}, limits).has_value());
  EXPECT_TRUE(tp.limits(small(2, 4), Scaling::weak).empty());
}

TEST(ScaleTest, RefusesUnknownWorkloadsAndWhatWouldNotFitInMemory) {
  const Workload& dp = find_workload("dp");
  Request base = small(10, 8);
  base.options = {{"batch", "1000000000"}};
  EXPECT_THAT(testing_support::refusal([&] { (void)dp.scale(base, {}, Scaling::strong); }),
              AllOf(HasSubstr("microbatches=250000000"), HasSubstr("microbatches=25000 or fewer")));
  EXPECT_THAT(testing_support::refusal([] { (void)find_workload("hybird"); }), HasSubstr("hybrid"));
}

TEST(ScaleTest, GiveAnyTwoOfTheBatchNumbers) {
  const Workload& dp = find_workload("dp");
  Request base = small(2, 8);
  base.options = {{"batch", "24"}, {"microbatches", "3"}};
  EXPECT_EQ(dp.scale(base, {}, Scaling::strong).options.at("microbatch"), "8");
  base.options = {{"batch", "24"}, {"microbatch", "8"}};
  EXPECT_EQ(dp.scale(base, {}, Scaling::strong).options.at("microbatches"), "3");
  base.options = {{"batch", "25"}, {"microbatch", "8"}};
  EXPECT_THAT(testing_support::refusal([&] { (void)dp.scale(base, {}, Scaling::strong); }),
              AllOf(HasSubstr("batch=25"), HasSubstr("24 and 32")));
}

TEST(TwinTest, KeepsMeshScheduleAndTheNumberOfBuckets) {
  const Workload& hybrid = find_workload("hybrid");
  for (const char* name : {"tiny", "gpt-1.3b", "llama3-70b"}) {
    for (const mesh::Shape mesh : {mesh::Shape{.dp = 2}, mesh::Shape{.tp = 4, .dp = 2, .pp = 2},
                                   mesh::Shape{.tp = 8}, mesh::Shape{.pp = 8}}) {
      const Request real = hybrid.scale({.model = load_model(name)}, mesh, Scaling::strong);
      const Request twin = hybrid.twin(real);
      EXPECT_EQ(twin.mesh, real.mesh);
      EXPECT_LE(twin.model.layers, 2 * mesh.pp);
      const program::ProgramSet set = hybrid.build(twin);
      program::check(set);
      const int reductions = count_ops(set.of(mesh.size() - 1), [](const program::Op& op) {
        return op.place.phase == program::Phase::gradient_reduction;
      });
      if (mesh.dp > 1) {
        EXPECT_GE(reductions, 2) << name << " " << mesh::to_string(mesh);
      }
      EXPECT_LT(facts_of(set).memory[0].value(), 64U << 20);
      EXPECT_FALSE(set.of(mesh.size() - 1).observables.empty());
    }
  }
}

}  // namespace
}  // namespace isoscale::workloads
