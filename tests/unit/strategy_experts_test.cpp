// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Mixtures of experts against their formulas, and routing against its description.

#include "stack_samples.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/stack/experts.hpp"

namespace isoscale::workloads {
namespace {

using stack::Routing;

constexpr int hidden = 32, ffn = 48, heads = 8, head_size = 4, layers = 4, sequence = 16;
constexpr int microbatch = 2, microbatches = 4;

Request sparse(const Options& options) {
  return request_of("hidden=32 ffn=48 head_size=4 layers=4 sequence=16 vocabulary=64", microbatches,
                    options);
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
  for (const double exponent : {0.0, 0.5}) {
    const auto routed = [&](std::uint64_t seed, int layer, std::uint64_t sample) {
      return stack::route(
          {.experts = 16, .topk = 2, .sequence = 64, .exponent = exponent, .seed = seed}, layer,
          sample);
    };
    EXPECT_EQ(routed(1, 0, 0), routed(1, 0, 0));
    const std::set all{routed(1, 0, 0), routed(1, 1, 0), routed(1, 0, 1), routed(2, 0, 0)};
    EXPECT_EQ(all.size(), 4U);
  }
}

TEST(Routing, WithoutSkewDealsOutEvenly) {
  const Routing routing{.experts = 8, .topk = 2, .sequence = 64, .seed = 9};
  for (std::uint64_t sample = 0; sample < 5; ++sample) {
    std::vector<int> rows(8);
    for (const std::uint32_t expert : stack::route(routing, 1, sample)) ++rows[expert];
    EXPECT_THAT(rows, Each(64 * 2 / 8));
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
    EXPECT_EQ(some[i], has_room ? all[i] : stack::no_expert);
    dropped += has_room ? 0 : 1;
  }
  EXPECT_GT(dropped, 0);
}

TEST(Routing, CapacityIsReadAsFactorOrPercent) {
  const auto factor = [](const char* text) {
    const Options given{{"capacity", text}};
    validate("hybrid", stack::option_table(), given);
    return stack::options_of({.options = given}).capacity;
  };
  EXPECT_EQ(factor("none"), 0);
  EXPECT_DOUBLE_EQ(factor("1.25"), 1.25);
  EXPECT_DOUBLE_EQ(factor("125%"), 1.25);
  for (const char* text : {"", "0", "0%", "-1", "x", "1.5x", "nan", "inf", "1e9", "%"}) {
    EXPECT_THAT(testing_support::usage_error([&] { (void)factor(text); }), HasSubstr("capacity"))
        << text;
  }
  // 16 positions x 2 over 8 experts are 4 each.
  const Request request = sparse("experts=8 topk=2 capacity=1.25"_options);
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
    for (const mesh::Shape mesh : {""_mesh, "ep=4"_mesh, "tp=2,ep=2"_mesh, "ep=2,dp=2,pp=2"_mesh}) {
      const double expected = layers * (attention_flop(tokens) + expert_flop(tokens * topk));
      EXPECT_DOUBLE_EQ(flop_in_all(build(scaled(base, mesh, Scaling::strong))), expected)
          << mesh::to_string(mesh);
    }
  }
}

TEST(Experts, DroppedTokensAreNotMultipliedAndPaddedRowsAre) {
  Options options = "experts=8 topk=2 skew=150 capacity=1.25"_options;
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
  for (const mesh::Shape mesh : {""_mesh, "ep=8"_mesh, "tp=2,ep=2"_mesh, "ep=2,dp=4,pp=2"_mesh}) {
    const program::ProgramSet set = build(shared_out("experts=8"_options, mesh));
    const double attention = 4.0 * hidden * heads * head_size;
    const double experts = 8.0 / mesh.ep * 2 * hidden * ffn;
    for (int rank = 0; rank < mesh.size(); ++rank) {
      EXPECT_EQ(peak_of(facts_of(set, rank), program::Role::weight),
                4.0 * layers / mesh.pp * (attention + experts) / mesh.tp)
          << mesh::to_string(mesh);
    }
  }
}

TEST(Experts, DenseGradientsAreReducedOverEpToo) {
  const auto facts = facts_of(build(shared_out("experts=4"_options, {.ep = 2, .dp = 2})), 1);
  const auto reduced = [&](mesh::AxisSet axes) {
    return sent_in(facts, program::OpKind::all_reduce, axes);
  };
  const double dense = layers * 4.0 * hidden * heads * head_size * 4;
  const double expert = layers * 2 * 2.0 * hidden * ffn * 4;
  EXPECT_NEAR(reduced({mesh::Axis::cp, mesh::Axis::ep, mesh::Axis::dp}), dense * 2 * 3 / 4, 8);
  EXPECT_NEAR(reduced({mesh::Axis::cp, mesh::Axis::dp}), expert * 2 * 1 / 2, 8);
}

TEST(Experts, BatchGrowsWithEpAndSoDoExpertsUnderWeakScaling) {
  const Request weak = scaled(sparse("experts=4"_options), {.ep = 4, .dp = 2}, Scaling::weak);
  const Request strong = shared_out("experts=4"_options, {.ep = 4, .dp = 2});
  EXPECT_EQ(weak.options.at("experts"), "16");
  EXPECT_EQ(weak.options.at("batch"), "64");
  EXPECT_EQ(strong.options.at("experts"), "4");
  EXPECT_EQ(strong.options.at("batch"), "8");
  EXPECT_EQ(find_workload("hybrid").work_per_step(weak), 64.0 * sequence);
}

TEST(Experts, RefuseWhatDoesNotFitWithTheNearestThatDoes) {
  Request large = sparse("experts=4"_options);
  large.model.sequence = 1 << 20;
  large.model.layers = 128;
  large.options["microbatches"] = "64";
  const auto four_and = [](const char* key, const char* value) {
    return sparse({{"experts", "4"}, {key, value}});
  };
  expect_refused({{sparse({}), {.ep = 2}, {"use experts=2, zero=1", "or ep=1"}},
                  {sparse("experts=6"_options), {.ep = 4}, {"4 and 8"}},
                  {sparse("experts=2 topk=3"_options), {}, {"use topk=2"}},
                  {four_and("expert_batch", "padded"), {}, {"capacity=1.25"}},
                  {four_and("capacity", "many"), {}, {"1.25 or 125%"}},
                  {four_and("tp_output", "gather"), {.tp = 2}, {"tp_output=reduce"}},
                  {four_and("elementwise", "on"), {}, {"use off"}},
                  {four_and("recompute", "full"), {}, {"recompute=none"}},
                  {four_and("sequence_parallel", "on"), {.tp = 2}, {"sequence_parallel=off"}},
                  {large, {}, {"row numbers"}}});
  const auto limits = find_workload("hybrid").limits(sparse("experts=6"_options), Scaling::strong);
  EXPECT_TRUE(mesh::violation({.ep = 4}, limits).has_value());
  EXPECT_FALSE(mesh::violation({.ep = 3}, limits).has_value());
}

TEST(Experts, ASmallerBatchThatIsSuggestedIsAccepted) {
  Request large = sparse("experts=4 microbatch=4 batch=16384"_options);
  large.model.sequence = 2048;
  large.model.layers = 4;
  large.options.erase("microbatches");
  const mesh::Shape mesh{.ep = 4};
  const auto refusal = [&] {  // without programs, which would take gigabytes
    return testing_support::refusal(
        [&] { static_cast<void>(scaled(large, mesh, Scaling::strong)); });
  };
  const std::string why = refusal();
  const std::size_t at = why.find("use batch=");
  ASSERT_NE(at, std::string::npos) << why;
  large.options["batch"] = std::to_string(std::stoll(why.substr(at + 10)));
  EXPECT_EQ(refusal(), "");
}

TEST(Experts, SpreadGroupsLieAsFarApartAsThoseOfDp) {
  Request request =
      scaled(sparse("experts=4"_options), {.tp = 2, .ep = 2, .dp = 3, .pp = 2}, Scaling::weak);
  std::vector<int> same(24);
  std::iota(same.begin(), same.end(), 0);
  EXPECT_EQ(hybrid::expert_places(request), same);
  request.options["expert_placement"] = "spread";
  const std::vector<int> places = hybrid::expert_places(request);
  EXPECT_THAT(places, UnorderedElementsAreArray(same));
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
  const Options skewed = "experts=8 skew=150 capacity=1"_options;
  using hybrid::expert_note, testing_support::expect_words;
  expect_words(expert_note(shared_out(skewed, {.ep = 4})), {"8 experts over ep=4"});
  expect_words(expert_note(shared_out("experts=8"_options, {.ep = 4})),
               {" 0.0% of routed tokens", "0.0% more rows", "has 1.00 times"});
  EXPECT_EQ(expert_note(scaled(sparse({}), {.dp = 4}, Scaling::weak)), "");
}

}  // namespace
}  // namespace isoscale::workloads
