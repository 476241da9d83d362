// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "mesh/mesh.hpp"
#include "mesh/request.hpp"
#include "words.hpp"

namespace isoscale::mesh {
namespace {

/// Every shape with extents 1 ... 3 on each of the five axes, and some large or lopsided ones.
std::vector<Shape> many_shapes() {
  std::vector<Shape> shapes{
      {.tp = 8, .dp = 128, .pp = 16}, {.dp = 1024}, {.tp = 7, .cp = 2, .ep = 5, .dp = 3, .pp = 11}};
  for (int code = 0; code < 243; ++code) {
    Shape& shape = shapes.emplace_back();
    int digits = code;
    for (const Axis axis : all_axes) shape[axis] = std::exchange(digits, digits / 3) % 3 + 1;
  }
  return shapes;
}

TEST(Mesh, TensorParallelVariesFastestAndPipelineSlowest) {
  const Shape shape{.tp = 2, .cp = 3, .ep = 5, .dp = 7, .pp = 11};
  EXPECT_EQ(shape.size(), 2310);
  EXPECT_THAT(mapped(all_axes, [&](Axis axis) { return stride(shape, axis); }),
              ElementsAre(1, 2, 6, 30, 210));
  EXPECT_EQ(rank_at(shape, {.tp = 1, .cp = 2, .ep = 4, .dp = 6, .pp = 10}), 2309);
  EXPECT_EQ(rank_at(shape, {.tp = 1, .cp = 1, .ep = 1, .dp = 1, .pp = 1}), 1 + 2 + 6 + 30 + 210);
}

TEST(Mesh, OfAxesThoseVaryWhoseExtentIsMoreThanOne) {
  const Shape shape{.tp = 2, .dp = 3};
  EXPECT_EQ(varying(shape, {Axis::dp, Axis::cp, Axis::ep}), AxisSet{Axis::dp});
  EXPECT_EQ(varying(shape, every_axis), (AxisSet{Axis::tp, Axis::dp}));
  EXPECT_EQ(varying(shape, {Axis::pp, Axis::cp}), AxisSet{});
  EXPECT_EQ(varying({}, every_axis), AxisSet{});
}

TEST(Mesh, RankAndCoordinatesAreInverse) {
  for (const Shape& shape : many_shapes()) {
    SCOPED_TRACE(to_string(shape));
    std::set<std::vector<int>> seen;
    for (int rank = 0; rank < shape.size(); ++rank) {
      const Coordinates at = coordinates(shape, rank);
      for (const Axis axis : all_axes) {
        ASSERT_GE(at[axis], 0);
        ASSERT_LT(at[axis], shape[axis]);
      }
      ASSERT_EQ(rank_at(shape, at), rank);
      seen.insert({at.tp, at.cp, at.ep, at.dp, at.pp});
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(shape.size()));
  }
}

TEST(Mesh, RefusesRanksAndCoordinatesOffTheMesh) {
  const Shape shape{.tp = 2, .dp = 3};
  EXPECT_THROW((void)coordinates(shape, -1), std::invalid_argument);
  EXPECT_THROW((void)rank_at(shape, {.tp = 2}), std::invalid_argument);
  EXPECT_THROW((void)rank_at(shape, {.dp = -1}), std::invalid_argument);
  const auto said =
      testing_support::refusal<std::invalid_argument>([&] { (void)coordinates(shape, 6); });
  testing_support::expect_words(said, {"rank 6", "dp=3,tp=2"});
}

TEST(Mesh, NeighboursWrapAround) {
  const Shape shape{.tp = 2, .dp = 2, .pp = 4};
  EXPECT_EQ(neighbour(shape, 0, Axis::pp, 1), 4);
  EXPECT_EQ(neighbour(shape, 0, Axis::pp, -1), 12);
  EXPECT_EQ(neighbour(shape, 13, Axis::pp, 1), 1);
  EXPECT_EQ(neighbour(shape, 5, Axis::tp, 1), 4);
  EXPECT_EQ(neighbour(shape, 5, Axis::dp, 7), 7);
  EXPECT_EQ(neighbour(shape, 5, Axis::pp, 0), 5);
  EXPECT_EQ(neighbour(shape, 5, Axis::cp, 3), 5);  // an axis of one
  EXPECT_EQ(neighbour(shape, 0, Axis::pp, 2'147'483'647), 12);
  EXPECT_EQ(neighbour(shape, 0, Axis::pp, -2'147'483'647 - 1), 0);
}

TEST(Groups, PartitionTheRanksForEveryShapeAndSetOfAxes) {
  for (const Shape& shape : many_shapes()) {
    for (unsigned bits = 0; bits < 32; ++bits) {
      const AxisSet axes = AxisSet::from_bits(static_cast<std::uint8_t>(bits));
      if (shape.size() > 300 && bits % 5 != 0) continue;  // the large ones: a sample
      SCOPED_TRACE(to_string(shape) + " along " + to_string(axes));
      // By colour, the ranks in ascending order: what group_members must give for each of them.
      std::map<int, std::vector<int>> by_colour;
      for (int rank = 0; rank < shape.size(); ++rank) {
        by_colour[group_colour(shape, rank, axes)].push_back(rank);
      }
      const int size = group_size(shape, axes);
      ASSERT_EQ(static_cast<int>(by_colour.size()) * size, shape.size());
      ASSERT_EQ(by_colour.begin()->first, 0);
      ASSERT_EQ(by_colour.rbegin()->first, static_cast<int>(by_colour.size()) - 1);
      for (const auto& [colour, ranks] : by_colour) {
        ASSERT_EQ(group_members(shape, ranks.front(), axes), ranks);
        ASSERT_EQ(group_members(shape, ranks.back(), axes), ranks);
        const Coordinates first = coordinates(shape, ranks.front());
        for (int index = 0; index < size; ++index) {
          const int rank = ranks[static_cast<std::size_t>(index)];
          ASSERT_EQ(group_index(shape, rank, axes), index);
          const Coordinates at = coordinates(shape, rank);
          for (const Axis axis : all_axes)
            ASSERT_TRUE(axes.contains(axis) || at[axis] == first[axis]);
        }
      }
    }
  }
}

TEST(Names, AreWrittenAsUsersTypeThem) {
  EXPECT_THAT(mapped(all_axes, [](Axis axis) { return name(axis); }),
              ElementsAre("tp", "cp", "ep", "dp", "pp"));
  EXPECT_EQ(name(Placement::packed), "packed");
  EXPECT_EQ(name(Placement::spread), "spread");
  EXPECT_EQ(to_string(Shape{.tp = 2, .dp = 2}), "dp=2,tp=2");
  EXPECT_EQ(to_string(Shape{}), "1");
  EXPECT_EQ(to_string(AxisSet{Axis::dp}), "dp");
  EXPECT_EQ(to_string(AxisSet{Axis::tp, Axis::dp}), "dp+tp");
  EXPECT_EQ(to_string(every_axis), "world");
  EXPECT_EQ(to_string(AxisSet{}), "self");
}

TEST(Place, PackedFillsNodeAfterNodeInOrderOfAppearance) {
  const std::vector<int> nodes{9, 9, 3, 3, 9, 3, 5, 5};
  EXPECT_THAT(place(Placement::packed, nodes, 1), ElementsAre(0));
  EXPECT_THAT(place(Placement::packed, nodes, 4), ElementsAre(0, 1, 4, 2));
  EXPECT_THAT(place(Placement::packed, nodes, 8), ElementsAre(0, 1, 4, 2, 3, 5, 6, 7));
}

TEST(Place, SpreadTakesAsFewRanksFromEachNodeAsPossible) {
  const std::vector<int> nodes{0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_THAT(place(Placement::spread, nodes, 3), ElementsAre(0, 1, 4));
  EXPECT_THAT(place(Placement::spread, nodes, 4), ElementsAre(0, 1, 4, 5));
  const std::vector<int> uneven{0, 1, 0, 2, 0, 0};  // node 0 has 4 ranks, the others 1
  EXPECT_THAT(place(Placement::spread, uneven, 3), ElementsAre(0, 1, 3));
  EXPECT_THAT(place(Placement::spread, uneven, 5), ElementsAre(0, 2, 4, 1, 3));
}

TEST(Place, SpreadIsAsEvenAsTheNodesAllow) {
  const std::vector<int> nodes{0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3};
  const std::vector<int> capacity{5, 2, 7, 1};
  for (int count = 1; count <= 15; ++count) {
    std::vector<int> taken(4, 0);
    const auto chosen = place(Placement::spread, nodes, count);
    ASSERT_EQ(std::set<int>(chosen.begin(), chosen.end()).size(), static_cast<std::size_t>(count));
    for (const int rank : chosen)
      ++taken[static_cast<std::size_t>(nodes[static_cast<std::size_t>(rank)])];
    for (std::size_t a = 0; a < 4; ++a) {
      for (std::size_t b = 0; b < 4; ++b) {
        // A node holds two more than another only if the other has no rank left to give.
        const bool even = taken[a] <= taken[b] + 1;
        EXPECT_TRUE(even || taken[b] == capacity[b]) << "count " << count;
      }
    }
  }
}

TEST(Place, RefusesCountsThatTheWorldDoesNotHave) {
  const std::vector<int> nodes{0, 0};
  for (const int count : {-1, 0, 3}) {
    EXPECT_THROW((void)place(Placement::packed, nodes, count), std::invalid_argument);
    EXPECT_THROW((void)place(Placement::spread, nodes, count), std::invalid_argument);
  }
  EXPECT_THROW((void)place(Placement::packed, {}, 1), std::invalid_argument);
}

TEST(Reach, TellsAxesInsideNodesFromThoseAcrossAndMixedOnes) {
  const Shape shape{.tp = 2, .dp = 2, .pp = 2};
  const std::vector<int> two_nodes{0, 0, 0, 0, 1, 1, 1, 1};
  EXPECT_EQ(reach(shape, Axis::cp, two_nodes), Reach::alone);
  EXPECT_EQ(reach_text(shape, two_nodes), "tp intra-node, dp intra-node, pp inter-node");
  const Shape square{.tp = 2, .dp = 2};
  EXPECT_EQ(reach(square, Axis::tp, std::vector<int>{0, 0, 1, 2}), Reach::mixed);
  EXPECT_EQ(reach(square, Axis::dp, std::vector<int>{0, 0, 1, 2}), Reach::inter_node);
  EXPECT_EQ(reach_text(Shape{}, std::vector<int>{0}), "");
  EXPECT_THROW((void)reach(Shape{.dp = 2}, Axis::dp, std::vector<int>{0}), std::invalid_argument);
}

/// A model of 12 heads and 24 layers with a global batch of 64.
const std::vector<Constraint>& model_limits() {
  static const std::vector<Constraint> limits{
      {Axis::tp, 12, "heads"}, {Axis::pp, 24, "layers"}, {Axis::dp, 64, "global batch"}};
  return limits;
}

std::string parse_refusal(std::string_view text) {
  return testing_support::usage_error(parse_request, text);
}

TEST(ParseRequest, ReadsAxesInAnyOrder) {
  EXPECT_EQ(parse_request("dp=2,tp=4"), (Request{{Axis::tp, 4}, {Axis::dp, 2}}));
  EXPECT_EQ(parse_request(" pp = 8 , ep=1, cp=1 "),
            (Request{{Axis::pp, 8}, {Axis::cp, 1}, {Axis::ep, 1}}));
  EXPECT_EQ(parse_request("tp=1"), (Request{{Axis::tp, 1}}));
}

TEST(ParseRequest, RefusesUnknownAndRepeatedAxesAndWhatIsNoNumberOfAtLeastOne) {
  testing_support::expect_words_of<std::string>({{"xp=2", {"'xp'", "tp, cp, ep, dp, pp"}},
                                                 {"TP=2", {"'TP'"}},
                                                 {"=2", {"''"}},
                                                 {"dp=2,tp=2,dp=4", {"dp is given twice"}}},
                                                parse_refusal);
  for (const auto* text : {"dp=0", "dp=-2", "dp=", "dp=two", "dp=2x", "dp=2.5", "dp=0x2", "dp=+2",
                           "dp=99999999999", "dp=2=2"}) {
    EXPECT_THAT(parse_refusal(text), HasSubstr("at least 1")) << text;
  }
  for (const auto* text : {"", " ", "dp", "dp=2,", ",dp=2", "dp=2,,tp=2", "8"}) {
    EXPECT_THAT(parse_refusal(text), HasSubstr("AXIS=NUMBER")) << text;
  }
}

TEST(Resolve, AnUnnamedDpAbsorbsWhatIsLeft) {
  EXPECT_EQ(resolve({}, 8, model_limits()), (Shape{.dp = 8}));
  EXPECT_EQ(resolve({{Axis::tp, 2}}, 8, model_limits()), (Shape{.tp = 2, .dp = 4}));
  EXPECT_EQ(resolve({{Axis::tp, 4}, {Axis::pp, 2}}, 8, model_limits()),
            (Shape{.tp = 4, .dp = 1, .pp = 2}));
  EXPECT_EQ(resolve({}, 1, model_limits()), (Shape{}));
  EXPECT_EQ(resolve({{Axis::cp, 2}}, 8, {}), (Shape{.cp = 2, .dp = 4}));
}

TEST(Resolve, NamedAxesMustMultiplyToTheRanksOrTheNearestMeshIsNamed) {
  EXPECT_EQ(resolve({{Axis::dp, 2}, {Axis::tp, 2}, {Axis::pp, 2}}, 8, model_limits()),
            (Shape{.tp = 2, .dp = 2, .pp = 2}));
  const int most = 2'147'483'647;
  using Asked = std::pair<Request, int>;  // a mesh, and how many ranks there are
  testing_support::expect_words_of<Asked>(
      {{{{{Axis::dp, 2}, {Axis::tp, 2}}, 8}, {"tp=2,dp=2", "to 4", "8 ranks is dp="}},
       // dp=4 changes one axis by 0.4 in log2; tp or pp cannot make 8 out of 3.
       {{{{Axis::dp, 3}, {Axis::tp, 2}}, 8}, {"8 ranks is dp=4,tp=2"}},
       // dp is free, so only tp counts: 4 (0.42) is nearer to 3 than 2 (0.58).
       {{{{Axis::tp, 3}}, 8}, {"8 ranks", "by 3", "is dp=2,tp=4"}},
       // tp=8 keeps the product but not the heads; one axis may change when dp is free.
       {{{{Axis::tp, 8}}, 8}, {"tp=8", "heads = 12", "is dp=2,tp=4"}},
       // If dp is named as well, two axes must change.
       {{{{Axis::tp, 8}, {Axis::dp, 1}}, 8}, {"tp=8", "heads = 12", "is dp=2,tp=4"}},
       // One axis changed wins over two.
       {{{{Axis::tp, 6}, {Axis::dp, 2}, {Axis::pp, 2}}, 48}, {"is dp=4,tp=6,pp=2"}},
       {{{}, 7}, {"dp=7", "global batch = 64", "no mesh of 7"}},
       {{{{Axis::tp, 2}}, 1}, {"1 rank is dp=1"}},
       {{{{Axis::tp, most}, {Axis::pp, most}, {Axis::dp, most}}, 8}, {"on 8 ranks"}},
       {{{{Axis::tp, 65536}, {Axis::pp, 65536}}, 8}, {"8 ranks", "by 4294967296"}},
       {{{}, 0}, {"at least 1 rank"}},
       {{{}, -4}, {"-4 ranks"}}},
      [](const Asked& asked) {
        return testing_support::usage_error(
            [&] { return resolve(asked.first, asked.second, model_limits()); });
      });
}

TEST(Resolve, TheNearestMeshKeepsEveryLimit) {
  for (int ranks = 1; ranks <= 96; ++ranks) {
    for (const int tp : {1, 2, 3, 5, 8, 16}) {
      for (const int pp : {1, 2, 7, 24}) {
        try {
          const Shape shape = resolve({{Axis::tp, tp}, {Axis::pp, pp}}, ranks, model_limits());
          EXPECT_EQ(shape.size(), ranks);
          EXPECT_THAT((std::vector{12 % shape.tp, 24 % shape.pp, 64 % shape.dp}), Each(0));
        } catch (const MeshError& error) {
          if (!error.nearest()) continue;
          // The mesh that the message proposes must itself be accepted.
          const std::string advice = to_text(*error.nearest());
          EXPECT_THAT(error.what(), EndsWith(" is " + advice));
          EXPECT_EQ(resolve(parse_request(advice), ranks, model_limits()).size(), ranks) << advice;
        }
      }
    }
  }
}

TEST(Violation, NamesTheFirstBrokenLimit) {
  EXPECT_EQ(violation({.tp = 4, .dp = 8, .pp = 3}, model_limits()), std::nullopt);
  EXPECT_EQ(violation({.tp = 5}, {}), std::nullopt);
  const auto broken = [](const Shape& shape) { return violation(shape, model_limits()).value(); };
  EXPECT_THAT(broken({.tp = 5, .pp = 5}), AllOf(StartsWith("tp=5"), EndsWith("heads = 12")));
  EXPECT_THAT(broken({.pp = 5}), AllOf(StartsWith("pp=5"), EndsWith("layers = 24")));
  EXPECT_THAT(broken({.tp = 24}), AllOf(StartsWith("tp=24"), EndsWith("heads = 12")));
}

}  // namespace
}  // namespace isoscale::mesh
