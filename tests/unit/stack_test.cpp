// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The stack of layers and its pipelines: work, traffic, scaling and twins, and each schedule's idle
// time, memory and hand-overs, which are those of its paper.

#include "program/check_races_and_matching.hpp"
#include "stack_samples.hpp"
#include "tests/support/unit_costs.hpp"
#include "workloads/stack/pipeline.hpp"
#include "workloads/stack/training_state_buffers.hpp"

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

/// Without attention all three passes of a layer would take alike; with these extents its GEMMs are
/// a hundredth of a layer's.
Request piped(int layers, int microbatches, Options options = {}) {
  options.try_emplace("microbatch", "1");
  return request_of(fmt::format("hidden=64 ffn=256 head_size=8 layers={} vocabulary=64", layers),
                    microbatches, std::move(options));
}

/// Returns how long each rank is idle in one period of repeated plays.
std::vector<std::int64_t> idle_of(const program::OutlineSet& outline) {
  const auto plays = simulate::simulate(outline, simulate::unit_costs(outline), {.plays = 3});
  std::vector<std::int64_t> idle;
  for (std::size_t rank = 0; rank < plays[2].ranks.size(); ++rank) {
    std::int64_t busy = 0;
    for (const timeline::Span& span : plays[2].ranks[rank].spans) {
      if (outline.of(static_cast<int>(rank)).ops[span.op].kind == program::OpKind::gemm) {
        busy += (span.end - span.start).value();
      }
    }
    const std::int64_t whole = (plays[2].ranks[rank].end - plays[1].ranks[rank].end).value();
    idle.push_back(whole - busy);
  }
  return idle;
}

/// The bubble in FLOP, which take a nanosecond each when simulated; written out from the papers,
/// not taken from the table. A layer of 12 h^2 weights takes 2 b s per weight and pass, and
/// attention's scores and context 4 b s^2 h forward and twice that for the input gradient.
std::int64_t bubble_of(const std::string& schedule, int p, int v, const Model& model) {
  const std::int64_t s = model.sequence, h = model.hidden;
  const std::int64_t linear = v * 2 * s * 12 * h * h, attention = v * 4 * s * s * h;
  const std::int64_t forward = linear + attention, input_gradient = linear + 2 * attention;
  if (schedule == "zb-h1") return (p - 1) * (forward + input_gradient - linear);
  return (p - 1) * (forward + input_gradient + linear) / v;
}

TEST(ScheduleTest, BubbleIsExactlyTheFormula) {
  for (const std::string schedule : {"gpipe", "1f1b", "interleaved", "zb-h1"}) {
    for (const mesh::Shape& mesh : {"pp=1"_mesh, "pp=2"_mesh, "pp=3"_mesh, "pp=4"_mesh, "pp=8"_mesh,
                                    "dp=2,pp=4"_mesh, "tp=2,pp=3"_mesh, "tp=2,dp=2,pp=8"_mesh}) {
      const int p = mesh.pp;
      for (const int v : {1, 2, 4}) {
        if (v > 1 && (schedule != "interleaved" || p == 1)) continue;
        for (const int m : {1, 3, p, 2 * p, 4 * p, 32}) {
          if (schedule == "zb-h1" && m < p) continue;
          if (schedule == "interleaved" && m % p != 0) continue;
          const Request base =
              piped(p * v, m * mesh.dp, {{"schedule", schedule}, {"v", std::to_string(v)}});
          const program::OutlineSet outline =
              program::outline(strong(base, mesh), program::Section::step);
          const std::int64_t bubble = bubble_of(schedule, p, v, base.model) / mesh.tp;
          SCOPED_TRACE(testing::Message()
                       << schedule << " " << mesh::to_string(mesh) << " v=" << v << " m=" << m);
          EXPECT_THAT(idle_of(outline), Each(bubble));
          // With all streams as one, a rank that computes cannot send: interleaved waits more.
          if (schedule == "interleaved") continue;
          EXPECT_THAT(idle_of(simulate::folded(outline)), Each(bubble));
        }
      }
    }
  }
}

TEST(ScheduleTest, MicrobatchesInFlightAreThoseOfThePapers) {
  for (int p = 1; p <= 8; ++p) {
    for (const int m : {1, 2, 5, 8, 24, 32}) {
      SCOPED_TRACE(testing::Message() << "p=" << p << " m=" << m);
      const auto of_stages = [&](const char* schedule) {
        const program::ProgramSet set = strong(piped(p, m, {{"schedule", schedule}}), {.pp = p});
        return mapped(std::views::iota(0, p),
                      [&](int stage) { return facts_of(set, stage).peak_live_microbatches; });
      };
      EXPECT_EQ(of_stages("1f1b"),
                mapped(std::views::iota(0, p), [&](int stage) { return std::min(p - stage, m); }));
      EXPECT_THAT(of_stages("gpipe"), Each(m));
      if (p == 1 || m % p != 0) continue;
      EXPECT_THAT(of_stages("zb-h1"), Each(p));
      // Megatron's interleaved schedule holds v p + p - 1 chunks on the first stage: Korthikanti et
      // al., arXiv 2205.05198, section 4.2.3.
      const stack::Pipeline pipeline{
          .schedule = stack::Schedule::interleaved, .stages = p, .chunks = 2, .microbatches = m};
      EXPECT_EQ(stack::most_in_flight(pipeline, 0), std::min(2 * p + p - 1, 2 * m));
    }
  }
}

/// Bytes of activations, at most, on a stage that is neither first nor last, by chunks in flight:
/// what a layer keeps is X, QKV, scores, context, Y and the inner result.
TEST(ScheduleTest, MemoryOfAStageEqualsItsFormula) {
  const int p = 4, v = 2, m = 8;
  const Request base = piped(p * v, m, "schedule=interleaved v=2"_options);
  const program::ProgramSet set = strong(base, {.pp = p});
  const std::uint64_t s = 4, h = 64, heads = 8;
  const std::uint64_t kept = 4 * (s * h + s * 3 * h + heads * s * s + s * h + s * h + s * 4 * h);
  for (const int stage : {1, 2}) {
    const program::Facts facts = facts_of(set, stage);
    const auto chunks = static_cast<std::uint64_t>(2 * (p - 1 - stage) + (v - 1) * p + 1);
    EXPECT_EQ(peak_of(facts, program::Role::activation), chunks * kept) << stage;
  }
}

TEST(ScheduleTest, UnevenStagesAndEveryCountOfMicrobatchesAreFreeOfDeadlock) {
  for (const Options& options :
       combinations({{"schedule", {"gpipe", "1f1b", "interleaved", "zb-h1"}},
                     {"v", {"1"}},
                     {"stage_layers", {"nearest", "lighter-ends", "1,2,3,4", "4,1,1,4"}},
                     {"handover", {"whole", "scattered"}}})) {
    for (int m = 2; m <= 12; ++m) {
      if (options.at("schedule") == "interleaved" && m % 4 != 0) continue;
      EXPECT_NO_THROW(program::check(strong(piped(10, m, options), {.tp = 2, .pp = 4})))
          << testing::PrintToString(options) << " m=" << m;
    }
  }
}

/// b s h per boundary, microbatch and direction; v times as often interleaved; 1/t scattered: arXiv
/// 2104.04473, sections 2.2.2 and 4.1.
TEST(ScheduleTest, HandOversMoveWhatTheFormulasSay) {
  const int m = 8;
  const std::uint64_t moved = 2 * m * 4 * 64 * 4;  // s * h * f32
  const auto middle = [&](const Options& options) {
    return sent_in(facts_of(strong(piped(8, m, options), {.tp = 2, .pp = 4}), 2),
                   program::OpKind::exchange);
  };
  EXPECT_EQ(middle("schedule=1f1b"_options), moved);
  EXPECT_EQ(middle("schedule=zb-h1"_options), moved);
  EXPECT_EQ(middle("schedule=interleaved v=2"_options), 2 * moved);
  EXPECT_EQ(middle("handover=scattered"_options), moved / 2);
}

TEST(ScheduleTest, RefusesWhatCannotBeWithTheNearestThatCan) {
  expect_refused({{piped(8, 6, "schedule=interleaved"_options), {.pp = 4}, {"use 4 or 8"}},
                  {piped(8, 1, "schedule=zb-h1"_options), {.pp = 4}, {"microbatches=4"}},
                  {piped(8, 4, "schedule=interleaved v=4"_options), {.pp = 4}, {"use v=2"}},
                  {piped(8, 4, "stage_layers=1,2,3"_options), {.pp = 4}, {"stage_layers=2,2,2,2"}},
                  {piped(8, 6, "schedule=interleaved"_options), {.pp = 3}, {"use pp=2"}},
                  {piped(8, 4, "stage_layers=even"_options), {.pp = 4}, {"like 7,8,8,7"}},
                  {piped(8, 4, "stage_layers=0,8"_options), {.pp = 2}, {"stage 0", "weights"}},
                  {piped(8, 4, "stage_layers=8,0"_options), {.pp = 2}, {"or vocabulary=on"}},
                  {piped(3, 4, "stage_layers=nearest"_options), {.pp = 4}, {"use pp=3"}},
                  {piped(1, 4, "stage_layers=lighter-ends"_options), {.pp = 4}, {"use pp=1"}}});
}

std::vector<int> layers_of(int layers, int p, int v, const std::string& rule) {
  workloads::Request request = piped(layers, p, options_of("stage_layers=" + rule));
  request.mesh.pp = p;
  if (v > 1) request.options.merge(options_of(fmt::format("schedule=interleaved v={}", v)));
  return stack::pipeline_of(request).layers;
}

/// Megatron-LM counts the embedding and the loss as a layer each, if it is told to account for
/// them: (62 + 2) / 32 stages have 2 layers each, and the ends 1; the 126 layers of Llama 3.1 405B
/// on 16 stages have 8 each, and the ends 7 (arXiv 2407.21783, section 3.3.2: one less on both).
TEST(ScheduleTest, LighterEndsHaveOneLayerLessAndListsAreTaken) {
  std::vector<int> expected(32, 2);
  expected.front() = expected.back() = 1;
  EXPECT_EQ(layers_of(62, 8, 4, "lighter-ends"), expected);
  expected.assign(16, 8);
  expected.front() = expected.back() = 7;
  EXPECT_EQ(layers_of(126, 16, 1, "lighter-ends"), expected);
  EXPECT_THAT(layers_of(11, 4, 1, "lighter-ends"), ElementsAre(3, 3, 3, 2));
  EXPECT_THAT(layers_of(2, 2, 2, "lighter-ends"), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(layers_of(10, 4, 1, "1,2,3,4"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(layers_of(6, 4, 2, "nearest"), ElementsAre(1, 1, 1, 1, 1, 1, 0, 0));
}

/// A stage without layers sends and receives as many bytes as any other: each boundary is crossed
/// by b s h elements, both ways, for each microbatch.
TEST(ScheduleTest, StagesWithoutLayersPassActivationsOn) {
  const int m = 8;
  const std::uint64_t moved = 2 * m * 4 * 64 * 4;  // s * h * f32
  for (const char* const schedule : {"1f1b", "gpipe", "zb-h1"}) {
    Request base = piped(8, m, options_of(fmt::format("schedule={} vocabulary=on", schedule)));
    base.options["stage_layers"] = "8,0";
    const program::ProgramSet two = strong(base, {.pp = 2});
    EXPECT_NO_THROW(program::check(two)) << schedule;
    EXPECT_EQ(sent_in(facts_of(two, 1), program::OpKind::exchange), moved / 2) << schedule;
  }
  // Chunks 0 of 2, 1, 1 and 1 layers, chunks 1 of 1 and then none: stages 1 to 3 pass on.
  const Options options = "schedule=interleaved v=2 stage_layers=2,1,1,1,0,1,0,0"_options;
  const program::ProgramSet set = strong(piped(6, m, options), {.pp = 4});
  EXPECT_NO_THROW(program::check(set));
  EXPECT_EQ(sent_in(facts_of(set, 2), program::OpKind::exchange), 2 * moved);
  for (const char* const stages : {"0,1,1,1,1,1,1,0", "0,0,0,0,1,2,1,2", "3,0,0,0,0,1,1,1"}) {
    for (const char* const handover : {"whole", "scattered"}) {
      Request base = piped(6, m, "schedule=interleaved v=2 microbatch=2"_options);
      base.options.merge(Options{{"stage_layers", stages}, {"handover", handover}});
      EXPECT_NO_THROW(program::check(strong(base, {.tp = 2, .pp = 4}))) << stages << handover;
    }
  }
  // Activations that only pass through are not kept for backward.
  const Options full = "schedule=interleaved v=2 stage_layers=1,1,1,1,1,1,0,0"_options;
  const auto kept = [&](int stage) {
    return peak_of(facts_of(strong(piped(6, m, full), {.pp = 4}), stage),
                   program::Role::activation);
  };
  EXPECT_LT(kept(2), kept(1));
}

}  // namespace
}  // namespace isoscale::workloads
