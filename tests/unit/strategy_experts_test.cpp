// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Mixtures of experts against their formulas, and routing against its description.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "program/check.hpp"
#include "stack_samples.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/stack/experts.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads {
namespace {

using stack::no_expert;
using stack::Routing;
using ::testing::HasSubstr;

constexpr int hidden = 32, ffn = 48, heads = 8, head_size = 4, layers = 4, sequence = 16;
constexpr int microbatch = 2, microbatches = 4;

Request sparse(const Options& options) {
  return request_of({.hidden = hidden,
                     .ffn = ffn,
                     .head_size = head_size,
                     .layers = layers,
                     .sequence = sequence,
                     .vocabulary = 64},
                    microbatches, options);
}

Request shared_out(const Options& options, const mesh::Shape& mesh) {
  return scaled(sparse(options), mesh, Scaling::strong);
}
program::ProgramSet build(const Request& request) { return find_workload("hybrid").build(request); }

TEST(Routing, GivesEachTokenDifferentExperts) {
  for (const double exponent : {0.0, 0.5, 1.0, 10.0}) {
    for (const std::uint32_t topk : {1U, 2U, 7U, 8U}) {
      const Routing routing{
          .experts = 8, .topk = topk, .sequence = 50, .exponent = exponent, .seed = 3};
      const auto experts = stack::route(routing, 2, 5);
      ASSERT_EQ(experts.size(), 50U * topk);
      for (std::size_t position = 0; position < 50; ++position) {
        const auto first = experts.begin() + static_cast<std::ptrdiff_t>(position * topk);
        const std::set<std::uint32_t> of_token(first, first + topk);
        EXPECT_EQ(of_token.size(), topk);
        EXPECT_LT(*of_token.rbegin(), 8U);
      }
    }
  }
}

TEST(Routing, IsTheSameEachTimeAndDiffersByLayerSampleAndSeed) {
  Routing routing{.experts = 16, .topk = 2, .sequence = 64, .exponent = 0.5, .seed = 1};
  for (const double exponent : {0.0, 0.5}) {
    routing.exponent = exponent;
    const auto one = stack::route(routing, 0, 0);
    EXPECT_EQ(one, stack::route(routing, 0, 0));
    EXPECT_NE(one, stack::route(routing, 1, 0));
    EXPECT_NE(one, stack::route(routing, 0, 1));
    Routing other = routing;
    other.seed = 2;
    EXPECT_NE(one, stack::route(other, 0, 0));
  }
}

TEST(Routing, WithoutSkewDealsOutEvenly) {
  const Routing routing{.experts = 8, .topk = 2, .sequence = 64, .seed = 9};
  for (std::uint64_t sample = 0; sample < 5; ++sample) {
    std::vector<int> rows(8);
    for (const std::uint32_t expert : stack::route(routing, 1, sample)) ++rows[expert];
    EXPECT_THAT(rows, testing::Each(64 * 2 / 8));
  }
}

TEST(Routing, WithSkewFollowsZipf) {
  constexpr std::uint64_t samples = 200;
  const Routing routing{.experts = 8, .topk = 1, .sequence = 500, .exponent = 1.2, .seed = 4};
  std::vector<double> rows(8);
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    for (const std::uint32_t expert : stack::route(routing, 0, sample)) ++rows[expert];
  }
  std::ranges::sort(rows, std::greater{});
  double sum = 0;
  for (int r = 1; r <= 8; ++r) sum += std::pow(r, -1.2);
  for (int r = 1; r <= 8; ++r) {
    const double expected = 500.0 * samples * std::pow(r, -1.2) / sum;
    // Six standard deviations of a count.
    EXPECT_NEAR(rows[static_cast<std::size_t>(r - 1)], expected, 6 * std::sqrt(expected));
  }
}

TEST(Routing, CapacityDropsTheLaterTokensOfASample) {
  Routing routing{.experts = 4, .topk = 1, .sequence = 40, .exponent = 2, .seed = 4};
  const auto all = stack::route(routing, 0, 0);
  routing.capacity = 5;
  const auto some = stack::route(routing, 0, 0);
  std::vector<int> seen(4);
  int dropped = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool has_room = seen[all[i]]++ < 5;
    EXPECT_EQ(some[i], has_room ? all[i] : no_expert);
    dropped += has_room ? 0 : 1;
  }
  EXPECT_GT(dropped, 0);
}

TEST(Routing, CapacityIsReadAsFactorOrPercent) {
  EXPECT_EQ(stack::capacity_factor("none"), 0);
  EXPECT_DOUBLE_EQ(stack::capacity_factor("1.25"), 1.25);
  EXPECT_DOUBLE_EQ(stack::capacity_factor("125%"), 1.25);
  for (const char* text : {"", "0", "0%", "-1", "x", "1.5x", "nan", "inf", "1e9", "%"}) {
    EXPECT_THROW(static_cast<void>(stack::capacity_factor(text)), base::UsageError) << text;
  }
  // 16 positions x 2 over 8 experts are 4 each.
  const Request request = sparse({{"experts", "8"}, {"topk", "2"}, {"capacity", "1.25"}});
  EXPECT_EQ(stack::routing_of(request).capacity, 5U);
}

TEST(Experts, AllToAllMovesTokensTimesTopkTimesHiddenOffTheRank) {
  for (const int ep : {2, 4, 8}) {
    for (const int topk : {1, 2, 4}) {
      const Request request =
          shared_out({{"experts", "8"}, {"topk", std::to_string(topk)}}, {.ep = ep});
      // Strong scaling: the batch of 8 samples is shared out.
      const double tokens = 8.0 / ep * sequence;
      const double one = tokens * topk * hidden * 4 * (ep - 1) / ep;
      const program::ProgramSet set = build(request);
      for (int rank = 0; rank < ep; ++rank) {
        const double sent =
            sent_in(facts_of(set, rank), program::OpKind::all_to_all, mesh::Axis::ep);
        // There and back, forward and backward, in every layer.
        EXPECT_NEAR(sent, 4 * layers * one, 4 * layers * microbatches) << ep << " " << topk;
      }
    }
  }
}

/// Forward, and twice as much backward.
double attention_flop(double tokens) {
  const double width = heads * head_size;
  return 3 * tokens * (2 * hidden * 4 * width + 2 * 2 * sequence * width);
}
double expert_flop(double rows) { return 3 * rows * (2 * 2.0 * hidden * ffn); }

TEST(Experts, FlopAreThoseOfTopkTimesTheMlp) {
  const double tokens = microbatch * microbatches * sequence;
  for (const int topk : {1, 2, 3}) {
    const Request base = sparse({{"experts", "8"}, {"topk", std::to_string(topk)}, {"skew", "90"}});
    for (const mesh::Shape mesh :
         {mesh::Shape{}, mesh::Shape{.ep = 4}, mesh::Shape{.tp = 2, .ep = 2},
          mesh::Shape{.ep = 2, .dp = 2, .pp = 2}}) {
      const double expected = layers * (attention_flop(tokens) + expert_flop(tokens * topk));
      EXPECT_DOUBLE_EQ(flop_in_all(build(scaled(base, mesh, Scaling::strong))), expected)
          << mesh::to_string(mesh);
    }
  }
}

TEST(Experts, DroppedTokensAreNotMultipliedAndPaddedRowsAre) {
  Options options{{"experts", "8"}, {"topk", "2"}, {"skew", "150"}, {"capacity", "1.25"}};
  const double tokens = microbatch * microbatches * sequence;
  const Request exact = shared_out(options, {.ep = 4});
  options["expert_batch"] = "padded";
  const Request padded = shared_out(options, {.ep = 4});
  const stack::RouteStats stats = stack::route_stats(padded);
  EXPECT_EQ(stats.routed, static_cast<std::uint64_t>(layers * tokens * 2));
  EXPECT_GT(stats.dropped, 0U);
  EXPECT_GT(stats.padded, 0U);
  EXPECT_GT(stats.imbalance, 1.0);
  EXPECT_EQ(stack::route_stats(exact).padded, 0U);
  const double multiplied = static_cast<double>(stats.routed - stats.dropped);
  const double attention = layers * attention_flop(tokens);
  EXPECT_DOUBLE_EQ(flop_in_all(build(exact)), attention + expert_flop(multiplied));
  EXPECT_DOUBLE_EQ(flop_in_all(build(padded)),
                   attention + expert_flop(multiplied + static_cast<double>(stats.padded)));
  // Capacity 5 of 8 experts for each of 8 samples in every layer.
  EXPECT_EQ(multiplied + static_cast<double>(stats.padded), 5.0 * 8 * 8 * layers);
}

TEST(Experts, AreSharedOutOverEpAndTp) {
  for (const mesh::Shape mesh : {mesh::Shape{}, mesh::Shape{.ep = 8}, mesh::Shape{.tp = 2, .ep = 2},
                                 mesh::Shape{.ep = 2, .dp = 4, .pp = 2}}) {
    const Request request = shared_out({{"experts", "8"}}, mesh);
    const program::ProgramSet set = build(request);
    const auto shards = static_cast<std::uint64_t>(mesh.tp),
               ep = static_cast<std::uint64_t>(mesh.ep);
    const std::uint64_t of_stage = layers / static_cast<std::uint64_t>(mesh.pp);
    const std::uint64_t attention = 4ULL * hidden * heads * head_size / shards;
    const std::uint64_t experts = 8 / ep * 2ULL * hidden * ffn / shards;
    for (int rank = 0; rank < mesh.size(); ++rank) {
      const auto facts = facts_of(set, rank);
      EXPECT_EQ(peak_of(facts, program::Role::weight), 4 * of_stage * (attention + experts))
          << mesh::to_string(mesh);
    }
  }
}

TEST(Experts, DenseGradientsAreReducedOverEpToo) {
  const mesh::Shape mesh{.ep = 2, .dp = 2};
  const program::ProgramSet set = build(shared_out({{"experts", "4"}}, mesh));
  const auto facts = facts_of(set, 1);
  const double dense = layers * 4.0 * hidden * heads * head_size * 4;
  const double expert = layers * 2 * 2.0 * hidden * ffn * 4;
  const mesh::AxisSet over_all{mesh::Axis::cp, mesh::Axis::ep, mesh::Axis::dp};
  const mesh::AxisSet over_dp{mesh::Axis::cp, mesh::Axis::dp};
  const auto reduced = [&](mesh::AxisSet axes) {
    return sent_in(facts, program::OpKind::all_reduce, axes);
  };
  EXPECT_NEAR(reduced(over_all), dense * 2 * 3 / 4, 8);
  EXPECT_NEAR(reduced(over_dp), expert * 2 * 1 / 2, 8);
}

TEST(Experts, BatchGrowsWithEpAndSoDoExpertsUnderWeakScaling) {
  const Request base = sparse({{"experts", "4"}});
  const Request weak = scaled(base, {.ep = 4, .dp = 2}, Scaling::weak),
                strong = scaled(base, {.ep = 4, .dp = 2}, Scaling::strong);
  EXPECT_EQ(weak.options.at("experts"), "16");
  EXPECT_EQ(weak.options.at("batch"), "64");
  EXPECT_EQ(strong.options.at("experts"), "4");
  EXPECT_EQ(strong.options.at("batch"), "8");
  EXPECT_EQ(find_workload("hybrid").work_per_step(weak), 64.0 * sequence);
}

TEST(Experts, RefuseWhatDoesNotFitWithTheNearestThatDoes) {
  EXPECT_THAT(refused(sparse({}), {.ep = 2}), HasSubstr("use experts=2, or ep=1"));
  EXPECT_THAT(refused(sparse({{"experts", "6"}}), {.ep = 4}),
              HasSubstr("the nearest that it does are 4 and 8"));
  EXPECT_THAT(refused(sparse({{"experts", "2"}, {"topk", "3"}}), {}),
              HasSubstr("use topk=2 or fewer"));
  EXPECT_THAT(refused(sparse({{"experts", "4"}, {"expert_batch", "padded"}}), {}),
              HasSubstr("capacity=1.25"));
  EXPECT_THAT(refused(sparse({{"experts", "4"}, {"capacity", "many"}}), {}),
              HasSubstr("1.25 or 125%"));
  EXPECT_THAT(refused(sparse({{"experts", "4"}, {"tp_output", "gather"}}), {.tp = 2}),
              HasSubstr("tp_output=reduce"));
  EXPECT_THAT(refused(sparse({{"experts", "4"}, {"elementwise", "on"}}), {}), HasSubstr("use off"));
  EXPECT_THAT(refused(sparse({{"experts", "4"}, {"recompute", "full"}}), {}),
              HasSubstr("recompute=none"));
  EXPECT_THAT(refused(sparse({{"experts", "4"}, {"sequence_parallel", "on"}}), {.tp = 2}),
              HasSubstr("sequence_parallel=off"));
  Request large = sparse({{"experts", "4"}});
  large.model.sequence = 1 << 20;
  large.model.layers = 128;
  large.options["microbatches"] = "64";
  EXPECT_THAT(refused(large, {}), HasSubstr("row numbers"));
  const auto limits = find_workload("hybrid").limits(sparse({{"experts", "6"}}), Scaling::strong);
  EXPECT_TRUE(mesh::violation({.ep = 4}, limits).has_value());
  EXPECT_FALSE(mesh::violation({.ep = 3}, limits).has_value());
}

TEST(Experts, SpreadGroupsLieAsFarApartAsThoseOfDp) {
  Request request =
      scaled(sparse({{"experts", "4"}}), {.tp = 2, .ep = 2, .dp = 3, .pp = 2}, Scaling::weak);
  std::vector<int> same(24);
  std::iota(same.begin(), same.end(), 0);
  EXPECT_EQ(hybrid::expert_places(request), same);
  request.options["expert_placement"] = "spread";
  const std::vector<int> places = hybrid::expert_places(request);
  EXPECT_THAT(places, testing::UnorderedElementsAreArray(same));
  for (int rank = 0; rank < 24; ++rank) {
    const auto at = [&](mesh::Axis axis) {
      return places[static_cast<std::size_t>(mesh::neighbour(request.mesh, rank, axis, 1))] -
             places[static_cast<std::size_t>(rank)];
    };
    EXPECT_EQ(std::abs(at(mesh::Axis::tp)), 1);
    EXPECT_EQ(std::abs(at(mesh::Axis::ep)), 2 * 3);
    EXPECT_EQ(std::abs(at(mesh::Axis::pp)), 2 * 3 * 2);
    const int of_dp = at(mesh::Axis::dp);
    EXPECT_TRUE(of_dp == 2 || of_dp == -2 * 2) << of_dp;
  }
}

TEST(Experts, PlansSayWhatRoutingDoes) {
  Options options{{"experts", "8"}, {"skew", "150"}, {"capacity", "1"}};
  EXPECT_THAT(hybrid::expert_note(shared_out(options, {.ep = 4})),
              HasSubstr("8 experts over ep=4: "));
  EXPECT_EQ(hybrid::expert_note(scaled(sparse({}), {.dp = 4}, Scaling::weak)), "");
  EXPECT_THAT(hybrid::expert_note(shared_out({{"experts", "8"}}, {.ep = 4})),
              HasSubstr(" 0.0% of routed tokens dropped, 0.0% more rows by padding, the busiest "
                        "rank of a layer has 1.00 times"));
}

TEST(Experts, OfTheWorkloadAreEightUnlessSaidOtherwise) {
  const Workload& ep = find_workload("ep");
  EXPECT_EQ(ep.scale(sparse({}), {.ep = 4}, Scaling::strong).options.at("experts"), "8");
  EXPECT_EQ(ep.scale(sparse({{"experts", "4"}}), {.ep = 4}, Scaling::strong).options.at("experts"),
            "4");
  EXPECT_EQ(ep.natural_mesh(4), (mesh::Request{{mesh::Axis::ep, 4}}));
  EXPECT_NO_THROW(program::check(ep.build(ep.scale(sparse({}), {.ep = 4}, Scaling::weak))));
}

}  // namespace
}  // namespace isoscale::workloads
