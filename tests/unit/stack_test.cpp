// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.hpp"
#include "program/check.hpp"
#include "program/facts.hpp"
#include "simulate/simulate.hpp"
#include "tests/support/unit_costs.hpp"
#include "tests/unit/small_model.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads {
namespace {

using ::testing::HasSubstr;

program::ProgramSet build(const Request& base, const mesh::Shape& mesh,
                          Scaling scaling = Scaling::weak) {
  const Workload& hybrid = find_workload("hybrid");
  return hybrid.build(hybrid.scale(base, mesh, scaling));
}

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
    const program::ProgramSet set = build(base, {});
    const double flop = program::facts(set.programs[0], set.mesh).flop.value();
    const double b = 2, s = base.model.sequence, h = base.model.hidden;
    const double expected = 72 * b * s * h * h * (1 + s / (6 * h));
    EXPECT_NEAR(flop / (base.model.layers * 3), expected, 1e-9 * expected) << name;
  }
}

TEST(StackTest, EveryMeshOfAModelHasTheSameFlopInAll) {
  const Request base = small(4, 8);
  const double one = program::facts(build(base, {}).programs[0], {}).flop.value();
  for (const mesh::Shape mesh : {mesh::Shape{.dp = 4}, mesh::Shape{.tp = 4}, mesh::Shape{.pp = 4},
                                 mesh::Shape{.tp = 2, .dp = 2, .pp = 2}}) {
    for (const char* output : {"reduce", "gather"}) {
      Request request = base;
      request.options["tp_output"] = output;
      const program::ProgramSet set = build(request, mesh, Scaling::strong);
      double sum = 0;
      for (int rank = 0; rank < mesh.size(); ++rank) {
        sum += program::facts(set.of(rank), mesh).flop.value();
      }
      EXPECT_DOUBLE_EQ(sum, one) << mesh::to_string(mesh) << " " << output;
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
  const program::Facts dp_facts = program::facts(build(base, dp, Scaling::strong).of(0), dp);
  EXPECT_EQ(bytes(dp_facts, program::OpKind::all_reduce), 4 * 12 * 16 * 16 * 4.0);
  const program::Facts tp_facts = program::facts(build(base, tp, Scaling::strong).of(0), tp);
  EXPECT_EQ(bytes(tp_facts, program::OpKind::all_reduce), 4 * 4 * 4 * activation);
  Request gather = base;
  gather.options["tp_output"] = "gather";
  const program::Facts g = program::facts(build(gather, tp, Scaling::strong).of(0), tp);
  // forward: context, projection output, inner (4 h wide), MLP output; backward: two all-reduces,
  // and the gathered inputs' gradients reduce-scattered.
  EXPECT_EQ(bytes(g, program::OpKind::all_gather), 4 * 4 * (1 + 1 + 4 + 1) * activation);
  EXPECT_EQ(bytes(g, program::OpKind::reduce_scatter), 4 * 4 * (1 + 4) * activation);
  EXPECT_EQ(bytes(g, program::OpKind::all_reduce), 4 * 4 * 2 * activation);
  const program::ProgramSet pipeline = build(base, pp, Scaling::strong);
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
    const program::ProgramSet set = build(base, mesh, Scaling::strong);
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

/// Over all ranks and one period of repeated plays: time in which a GEMM runs, and all time.
struct Use {
  std::int64_t busy = 0, whole = 0;
};

Use use_of(const program::ProgramSet& set) {
  const program::OutlineSet outline = program::outline(set, program::Section::step);
  const auto plays = simulate::simulate(outline, simulate::unit_costs(outline), {.plays = 3});
  Use use;
  for (std::size_t rank = 0; rank < plays[2].ranks.size(); ++rank) {
    use.whole += (plays[2].ranks[rank].end - plays[1].ranks[rank].end).value();
    for (const timeline::Span& span : plays[2].ranks[rank].spans) {
      if (outline.of(static_cast<int>(rank)).ops[span.op].kind == program::OpKind::gemm) {
        use.busy += (span.end - span.start).value();
      }
    }
  }
  return use;
}

/// The idle fraction is exactly (p - 1) / (m + p - 1): arXiv 2104.04473, section 2.2. In integers.
void expect_idle_formula(const program::ProgramSet& set, int m, std::string_view schedule) {
  const int p = set.mesh.pp;
  const Use use = use_of(set);
  EXPECT_EQ((use.whole - use.busy) * (m + p - 1), use.whole * (p - 1))
      << schedule << " " << mesh::to_string(set.mesh) << " m=" << m;
}

TEST(PipelineTest, IdleFractionIsExactlyTheFormula) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (int p = 1; p <= 8; ++p) {
      for (int m = 1; m <= 32; ++m) {
        expect_idle_formula(build(small(1, m, {{"schedule", schedule}}), {.pp = p}), m, schedule);
      }
    }
  }
}

TEST(PipelineTest, IdleFractionHoldsBesideDpAndTp) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (const mesh::Shape mesh : {mesh::Shape{.dp = 2, .pp = 4}, mesh::Shape{.tp = 2, .pp = 3},
                                   mesh::Shape{.tp = 2, .dp = 2, .pp = 8}}) {
      for (const int m : {1, 3, 8, 32}) {
        expect_idle_formula(build(small(2, m, {{"schedule", schedule}}), mesh), m, schedule);
      }
    }
  }
}

TEST(PipelineTest, LiveMicrobatchesAreThoseOfTheSchedule) {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {1, 2, 5, 8, 32}) {
      const program::ProgramSet one = build(small(1, m, {{"schedule", "1f1b"}}), {.pp = p});
      const program::ProgramSet all = build(small(1, m, {{"schedule", "gpipe"}}), {.pp = p});
      for (int stage = 0; stage < p; ++stage) {
        EXPECT_EQ(program::facts(one.of(stage), one.mesh).peak_live_microbatches,
                  std::min(p - stage, m))
            << "p=" << p << " m=" << m << " stage " << stage;
        EXPECT_EQ(program::facts(all.of(stage), all.mesh).peak_live_microbatches, m);
      }
    }
  }
}

TEST(PipelineTest, StorageIsReusedCloseToThePeakOfLiveBytes) {
  for (const char* schedule : {"gpipe", "1f1b"}) {
    for (const int p : {1, 2, 4, 8}) {
      const program::ProgramSet set = build(small(4, 16, {{"schedule", schedule}}), {.pp = p});
      for (int stage = 0; stage < p; ++stage) {
        const program::Facts facts = program::facts(set.of(stage), set.mesh);
        EXPECT_LE(static_cast<double>(facts.memory[0].value()),
                  1.25 * static_cast<double>(facts.peak_live[0].value()))
            << schedule << " p=" << p << " stage " << stage;
      }
    }
  }
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
                program::check(build(small(2, m, options), {.tp = tp, .dp = dp, .pp = pp})))
                << "tp=" << tp << " dp=" << dp << " pp=" << pp << " m=" << m;
            ++cases;
          }
        }
      }
    }
  }
  EXPECT_EQ(cases, 3 * 3 * 4 * 4 * 3);
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
  const double one = program::facts(build(base, {}).of(0), {}).flop.value();
  for (const mesh::Shape mesh : {mesh::Shape{.dp = 3}, mesh::Shape{.tp = 4}, mesh::Shape{.pp = 4},
                                 mesh::Shape{.tp = 2, .dp = 2, .pp = 2}}) {
    const Request request = hybrid.scale(base, mesh, Scaling::weak);
    const program::ProgramSet set = hybrid.build(request);
    for (int rank = 0; rank < mesh.size(); ++rank) {
      EXPECT_EQ(program::facts(set.of(rank), mesh).flop.value(), one) << mesh::to_string(mesh);
    }
    // With every rank as busy as the one, ideal throughput is proportional to the ranks.
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

TEST(ScaleTest, RefusesProgramsThatWouldNotFitInMemory) {
  const Workload& dp = find_workload("dp");
  Request base = small(10, 8);
  base.options = {{"batch", "1000000000"}};
  try {
    (void)dp.scale(base, {}, Scaling::strong);
    FAIL();
  } catch (const base::UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("microbatches=250000000"));
    EXPECT_THAT(error.what(), HasSubstr("microbatches=25000 or fewer"));
  }
}

TEST(ScaleTest, GiveAnyTwoOfTheBatchNumbers) {
  const Workload& dp = find_workload("dp");
  Request base = small(2, 8);
  base.options = {{"batch", "24"}, {"microbatches", "3"}};
  EXPECT_EQ(dp.scale(base, {}, Scaling::strong).options.at("microbatch"), "8");
  base.options = {{"batch", "24"}, {"microbatch", "8"}};
  EXPECT_EQ(dp.scale(base, {}, Scaling::strong).options.at("microbatches"), "3");
  base.options = {{"batch", "25"}, {"microbatch", "8"}};
  try {
    (void)dp.scale(base, {}, Scaling::strong);
    FAIL();
  } catch (const base::UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("batch=25"));
    EXPECT_THAT(error.what(), HasSubstr("24 and 32"));
  }
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
      int reductions = 0;
      for (const program::Op& op : set.of(mesh.size() - 1).step().ops) {
        reductions += op.place.phase == program::Phase::gradient_reduction ? 1 : 0;
      }
      if (mesh.dp > 1) {
        EXPECT_GE(reductions, 2) << name << " " << mesh::to_string(mesh);
      }
      EXPECT_LT(program::facts(set.of(0), mesh).memory[0].value(), 64U << 20);
      EXPECT_FALSE(set.of(mesh.size() - 1).observables.empty());
    }
  }
}

TEST(RegistryTest, UnknownWorkloadNamesTheNearest) {
  try {
    (void)find_workload("hybird");
    FAIL();
  } catch (const base::UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("hybrid"));
  }
}

}  // namespace
}  // namespace isoscale::workloads
