// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/check.hpp"
#include "stack_samples.hpp"

#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads {
namespace {

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

TEST(StackTest, EveryMeshOfAModelHasTheSameFlopInAll) {
  const double one = flop_of(weak(small(4, 8), {}));
  for (const mesh::Shape mesh : {"dp=4"_mesh, "tp=4"_mesh, "pp=4"_mesh, "tp=2,dp=2,pp=2"_mesh}) {
    for (const char* output : {"reduce", "gather"}) {
      EXPECT_DOUBLE_EQ(flop_in_all(strong(small(4, 8, {{"tp_output", output}}), mesh)), one)
          << mesh::to_string(mesh) << " " << output;
    }
  }
}

TEST(StackTest, TrafficFollowsTheTextbook) {
  const double bsh = 4 * 2 * 16 * 4;  // bytes: s * b * h * f32
  const auto bytes = [](const mesh::Shape& mesh, const Options& options = {}) {
    std::map<program::OpKind, double> sums;
    for (const program::Traffic& entry : facts_of(strong(small(4, 4, options), mesh)).traffic) {
      sums[entry.kind] += static_cast<double>(entry.bytes.value());
    }
    return sums;
  };
  using enum program::OpKind;
  using Sums = std::map<program::OpKind, double>;
  // dp all-reduces every gradient once; tp all-reduces 4 activations a layer and microbatch.
  EXPECT_EQ(bytes({.dp = 2}), (Sums{{all_reduce, 4 * 12 * 16 * 16 * 4.0}}));
  EXPECT_EQ(bytes({.tp = 2}), (Sums{{all_reduce, 4 * 4 * 4 * bsh}}));
  // Forward: context, projection output, inner (4 h wide), MLP output; backward: two all-reduces,
  // and the gathered inputs' gradients reduce-scattered.
  EXPECT_EQ(bytes({.tp = 2}, "tp_output=gather"_options),
            (Sums{{all_gather, 4 * 4 * (1 + 1 + 4 + 1) * bsh},
                  {reduce_scatter, 4 * 4 * (1 + 4) * bsh},
                  {all_reduce, 4 * 4 * 2 * bsh}}));
  // pp moves one activation per boundary, microbatch and direction: each of two stages sends four.
  EXPECT_EQ(sent_in(facts_of(strong(small(4, 4), {.pp = 2})), exchange), 4 * bsh);
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

TEST(ScaleTest, StrongScalingKeepsTheBatchAndTakesMicrobatchesFirst) {
  const Workload& dp = find_workload("dp");
  const Request base = small(4, 8);
  const auto at = [&](int ranks) {
    const Request request = dp.scale(base, {.dp = ranks}, Scaling::strong);
    return std::array{request.options.at("batch"), request.options.at("microbatch"),
                      request.options.at("microbatches")};
  };
  EXPECT_THAT(at(1), ElementsAre("16", "2", "8"));
  EXPECT_THAT(at(4), ElementsAre("16", "2", "2"));
  EXPECT_THAT(at(8), ElementsAre("16", "2", "1"));
  EXPECT_THAT(at(16), ElementsAre("16", "1", "1"));
  EXPECT_THROW((void)at(3), base::UsageError);
  EXPECT_THROW((void)at(32), base::UsageError);
}

TEST(ScaleTest, WeakScalingKeepsEveryRanksGemms) {
  const Workload& hybrid = find_workload("hybrid");
  const Request alone = scaled(small(2, 4), {}, Scaling::weak);
  const double one = flop_of(hybrid.build(alone));
  for (const mesh::Shape mesh : {"dp=3"_mesh, "tp=4"_mesh, "pp=4"_mesh, "tp=2,dp=2,pp=2"_mesh}) {
    SCOPED_TRACE(mesh::to_string(mesh));
    const Request request = scaled(small(2, 4), mesh, Scaling::weak);
    const program::ProgramSet set = hybrid.build(request);
    for (int rank = 0; rank < mesh.size(); ++rank) EXPECT_EQ(flop_of(set, rank), one);
    // Every rank is as busy as the one, so ideal throughput is proportional to the ranks.
    EXPECT_DOUBLE_EQ(hybrid.work_per_step(request), mesh.size() * hybrid.work_per_step(alone));
  }
}

TEST(ScaleTest, GatheringNeedsAHiddenSizeThatDividesAlsoWhenTheModelGrows) {
  const Workload& tp = find_workload("tp");
  const auto limits = tp.limits(small(2, 4, "tp_output=gather"_options), Scaling::weak);
  EXPECT_TRUE(mesh::violation({.tp = 3}, limits).has_value());
  EXPECT_FALSE(mesh::violation({.tp = 4}, limits).has_value());
  EXPECT_TRUE(tp.limits(small(2, 4), Scaling::weak).empty());
}

TEST(ScaleTest, GiveAnyTwoOfTheBatchNumbersThatFitInMemory) {
  const auto scaled = [](int layers, const Options& options) {
    Request base = small(layers, 8);
    base.options = options;
    return find_workload("dp").scale(base, {}, Scaling::strong).options;
  };
  EXPECT_EQ(scaled(2, "batch=24 microbatches=3"_options).at("microbatch"), "8");
  EXPECT_EQ(scaled(2, "batch=24 microbatch=8"_options).at("microbatches"), "3");
  using testing_support::expect_words, testing_support::refusal;
  expect_words(refusal([&] { (void)scaled(2, "batch=25 microbatch=8"_options); }),
               {"batch=25", "24 and 32"});
  const auto large = [](const char* options) {
    const Request base{.model = load_model("llama3-8b"), .options = options_of(options)};
    return find_workload("hybrid").scale(base, "tp=8"_mesh, Scaling::strong);
  };
  // 8192 positions and 4 heads on each rank: 2^31 rows are one too many.
  EXPECT_NO_THROW((void)large("batch=65535 microbatch=65535"));
  expect_words(refusal([&] { (void)large("batch=65536 microbatch=65536"); }),
               {"microbatch=65536", "8192 positions", "4 heads", "microbatch=65535 or fewer"});
  expect_words(refusal([&] { (void)scaled(10, "batch=1000000000"_options); }),
               {"microbatches=250000000", "microbatches=25000 or fewer"});
  expect_words(refusal([] { (void)find_workload("hybird"); }), {"hybrid"});
}

TEST(TwinTest, KeepsMeshScheduleAndTheNumberOfBuckets) {
  const Workload& hybrid = find_workload("hybrid");
  for (const char* name : {"tiny", "gpt-1.3b", "llama3-70b"}) {
    for (const mesh::Shape mesh : {"dp=2"_mesh, "tp=4,dp=2,pp=2"_mesh, "tp=8"_mesh, "pp=8"_mesh}) {
      const Request real = hybrid.scale({.model = load_model(name)}, mesh, Scaling::strong);
      const Request twin = hybrid.twin(real);
      EXPECT_EQ(twin.mesh, real.mesh);
      EXPECT_LE(twin.model.layers, 2 * mesh.pp);
      EXPECT_LE(twin.model.head_size, 8);
      const program::ProgramSet set = hybrid.build(twin);
      program::check(set);
      const int reductions = count_ops(set.of(mesh.size() - 1), [](const program::Op& op) {
        return op.place.phase == program::Phase::gradient_reduction;
      });
      if (mesh.dp > 1) {
        EXPECT_GE(reductions, 2) << name << " " << mesh::to_string(mesh);
      }
      EXPECT_LT(set.of(0).arena_bytes[0], 64U << 20);
      EXPECT_FALSE(set.of(mesh.size() - 1).observables.empty());
    }
  }
}

}  // namespace
}  // namespace isoscale::workloads
