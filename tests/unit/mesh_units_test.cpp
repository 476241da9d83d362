// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "mesh/mesh_request.hpp"
#include "units/quantity_text.hpp"
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
  testing_support::expect_words(
      testing_support::refusal<std::invalid_argument>([&] { return coordinates(shape, 6); }),
      {"rank 6", "dp=3,tp=2"});
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
const std::vector<Constraint> model_limits{
    {Axis::tp, 12, "heads"}, {Axis::pp, 24, "layers"}, {Axis::dp, 64, "global batch"}};

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
  EXPECT_EQ(resolve({}, 8, model_limits), (Shape{.dp = 8}));
  EXPECT_EQ(resolve({{Axis::tp, 2}}, 8, model_limits), (Shape{.tp = 2, .dp = 4}));
  EXPECT_EQ(resolve({{Axis::tp, 4}, {Axis::pp, 2}}, 8, model_limits),
            (Shape{.tp = 4, .dp = 1, .pp = 2}));
  EXPECT_EQ(resolve({}, 1, model_limits), (Shape{}));
  EXPECT_EQ(resolve({{Axis::cp, 2}}, 8, {}), (Shape{.cp = 2, .dp = 4}));
}

TEST(Resolve, NamedAxesMustMultiplyToTheRanksOrTheNearestMeshIsNamed) {
  EXPECT_EQ(resolve({{Axis::dp, 2}, {Axis::tp, 2}, {Axis::pp, 2}}, 8, model_limits),
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
            [&] { return resolve(asked.first, asked.second, model_limits); });
      });
}

}  // namespace
}  // namespace isoscale::mesh

namespace isoscale::units {
namespace {

std::vector<std::uint64_t> bytes_of(const std::vector<std::string>& texts) {
  return mapped(texts, [](const std::string& text) { return parse_bytes(text).value(); });
}
template <class Given = double>
auto each(const auto& call, const std::vector<Given>& values) {
  return mapped(values, call);
}
std::vector<double> seconds_of(const std::vector<std::string>& texts) {
  return mapped(texts, [](const std::string& text) { return parse_seconds(text).value(); });
}

std::string refusal(const auto& parse, std::string_view text) {
  return testing_support::usage_error<std::invalid_argument>([&] { (void)parse(text); });
}

void expect_refusals(const auto& parse,
                     const std::vector<testing_support::Refused<std::string>>& cases) {
  testing_support::expect_words_of(cases, [&](const auto& text) { return refusal(parse, text); });
}

// A quantity keeps its unit and mixes with no other.
static_assert(Bytes{3} + Bytes{4} * 2 - Bytes{1} == 2 * Bytes{5});
static_assert(Bytes{10} / std::uint64_t{4} == Bytes{2} && Bytes{1} / Bytes{4} == 0.25);
static_assert(rate(Bytes{3000}, Seconds{1.5}) == BytesPerSecond{2000});
static_assert(!std::is_convertible_v<std::uint64_t, Bytes>);
static_assert(!std::is_convertible_v<Bytes, std::uint64_t>);
static_assert(!std::is_constructible_v<Bytes, Seconds>);
static_assert(!std::is_constructible_v<Seconds, Nanoseconds>);

TEST(Quantity, ConvertsTimesWhichSaturateBeyondNanoseconds) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const auto nanoseconds = [](double seconds) { return to_nanoseconds(Seconds{seconds}).value(); };
  EXPECT_DOUBLE_EQ(to_seconds(Nanoseconds{2'500'000'000}).value(), 2.5);
  EXPECT_THAT(each(nanoseconds, {1.5e-6, 0.6e-9, -0.6e-9, 9e9, std::nan("")}),
              ElementsAre(1500, 1, -1, 9'000'000'000'000'000'000, 0));
  EXPECT_THAT(each(nanoseconds, {1e30, infinite, 0x1p63 * 1e-9, -1e30, -infinite}),
              ElementsAre(most, most, most, least, least));
}

TEST(ParseBytes, ReadsEveryUnitAndFractions) {
  EXPECT_THAT(bytes_of({"0", "4096", "007", "17B", "3kB", "25 MB", "2GB", "1TB"}),
              ElementsAre(0, 4096, 7, 17, 3'000, 25'000'000, 2'000'000'000, 1'000'000'000'000));
  EXPECT_THAT(bytes_of({"1KiB", "  \t 7  KiB ", "64MiB", "80GiB", "1TiB"}),
              ElementsAre(1'024, 7'168, 67'108'864, 85'899'345'920, 1'099'511'627'776));
  EXPECT_THAT(bytes_of({"1.5KiB", "0.3kB", "2.50 MB", "4.000", ".5KiB", "5."}),
              ElementsAre(1'536, 300, 2'500'000, 4, 512, 5));
  EXPECT_THAT(bytes_of({"5e8", "2.56E2KiB", "1.5e0 kB", "0.0015e3kB", "5e-1kB"}),
              ElementsAre(500'000'000, 262'144, 1'500, 1'500, 500));
  // The first is not a binary fraction; the second has more digits than a double; the others are
  // the largest below 2^63.
  EXPECT_THAT(
      bytes_of({"1234567.890123457GB", "9007199254740993", "9223372036854775807", "8388607TiB"}),
      ElementsAre(1'234'567'890'123'457, 9'007'199'254'740'993, 9'223'372'036'854'775'807U,
                  9'223'370'937'343'148'032U));
}

TEST(ParseBytes, RefusalsSayWhatToWrite) {
  for (const auto* text :
       {"1.5", "0.5B", "0.0001kB", "1.3KiB", "1.00000015MB", "1e-300", "1.25e1", "5e-1"}) {
    EXPECT_THAT(refusal(parse_bytes, text), HasSubstr("whole number of bytes")) << text;
  }
  for (const auto* text : {"MiB", "abc", "+5", "nan", "inf", ",5", "\xc3\xa9"}) {
    EXPECT_THAT(refusal(parse_bytes, text), HasSubstr("start with a number")) << text;
  }
  for (const auto* text : {"0x10", "1,5KiB", "1 2", "5MiB5", "1..5", "1.5.5", "5%"}) {
    EXPECT_THAT(refusal(parse_bytes, text), Not(HasSubstr("too large"))) << text;
  }
  for (const auto* text : {"9223372036854775808", "8388608TiB", "18446744073709551615",
                           "18446744073709551616", "99999999999999999999999999999999GiB",
                           "9223372036854775807KiB", "9223372.036854775808TB", "1e19", "99e18"}) {
    EXPECT_THAT(refusal(parse_bytes, text), AllOf(HasSubstr("too large"), HasSubstr("2^63")))
        << text;
  }
  expect_refusals(parse_bytes, {{"64M", {"'64M'", "ambiguous", "MB (10^6)", "MiB (2^20)"}},
                                {"64K", {"kB (10^3)", "KiB (2^10)"}},
                                {"64g", {"GB (10^9)", "GiB (2^30)"}},
                                {"1t", {"TB (10^12)", "TiB (2^40)"}},
                                {"4KB", {"kB", "KiB"}},
                                {"64mib", {"write MiB"}},
                                {"64mb", {"write MB"}},
                                {"64b", {"write B"}},
                                {"64 apples", {"unknown unit 'apples'", "MiB"}},
                                {"64PiB", {"unknown unit 'PiB'"}},
                                {"5e", {"unit"}},
                                {"1e999", {"out of range"}},
                                {"", {"empty"}},
                                {" \t ", {"empty"}},
                                {"-1", {"negative"}},
                                {"-0", {"negative"}}});
}

TEST(ParseBytes, KeepsHostileTextOutOfTheTerminal) {
  const std::string escape = refusal(parse_bytes, "5\x1b[31mred\n");
  EXPECT_THAT(escape, AllOf(HasSubstr("\\x1b"), HasSubstr("\\x0a"), Not(HasSubstr("\x1b"))));
  const std::string endless(100'000, '9');
  EXPECT_LT(refusal(parse_bytes, endless).size(), 200U);
  EXPECT_LT(refusal(parse_bytes, fmt::format("1{}", std::string(100'000, 'x'))).size(), 250U);
  EXPECT_EQ(parse_bytes(fmt::format("{}5", std::string(100'000, '0'))), Bytes{5});
  using namespace std::string_view_literals;
  EXPECT_THAT(refusal(parse_bytes, "5\0MiB"sv), HasSubstr("\\x00"));
}

TEST(ParseSeconds, ReadsEveryUnit) {
  EXPECT_THAT(seconds_of({"30s", "25m", "25 min", "2h", "1.5h", "90", " 0 "}),
              ElementsAre(30.0, 1500.0, 1500.0, 7200.0, 5400.0, 90.0, 0.0));
  EXPECT_THAT(seconds_of({"250ms", "10us", "10\u00b5s", "7ns"}),
              Pointwise(DoubleEq(), {0.25, 10e-6, 10e-6, 7e-9}));
}

TEST(ParseSeconds, RefusesTheRest) {
  for (const auto* text : {"s", "inf", "nan", "infinity", "+5s", "soon"}) {
    EXPECT_THAT(refusal(parse_seconds, text), HasSubstr("start with a number")) << text;
  }
  expect_refusals(parse_seconds, {{"", {"empty"}},
                                  {"-1s", {"negative"}},
                                  {"-nan", {"negative"}},
                                  {"5d", {"unknown unit 'd'", "ms"}},
                                  {"5M", {"unknown unit 'M'"}},
                                  {"1m30s", {"unknown unit 'm30s'"}},
                                  {"1e999", {"out of range"}},
                                  {"1e308h", {"out of range"}}});
}

TEST(ParseRatio, ReadsPercentAndPlainNumbersAndRefusesTheRest) {
  EXPECT_THAT(each<std::string>(parse_ratio, {"1%", "0.01", "2.5 %", "1", "150%", ".5"}),
              Pointwise(DoubleEq(), {0.01, 0.01, 0.025, 1.0, 1.5, 0.5}));
  expect_refusals(parse_ratio, {{"5", {"ambiguous", "5%", "0.05"}},
                                {"-1%", {"negative"}},
                                {"1 percent", {"unknown unit 'percent'"}},
                                {"1%%", {"unknown unit"}},
                                {"nan%", {"start with a number"}},
                                {"", {"empty"}}});
}

TEST(Format, OfBytesUsesBinaryUnitsWithThreeDigitsThatAreReadBack) {
  const auto text = [](std::uint64_t bytes) { return format(Bytes{bytes}); };
  EXPECT_THAT(each<std::uint64_t>(text, {0, 1023, 1024, 1'572'864, 67'108'864, 1'048'576'000}),
              ElementsAre("0 B", "1023 B", "1.00 KiB", "1.50 MiB", "64.0 MiB", "1000 MiB"));
  // Not "1024 KiB", and not "10.00 KiB".
  EXPECT_THAT(each<std::uint64_t>(text, {1'048'575, 10'239, std::uint64_t{1} << 63U}),
              ElementsAre("1.00 MiB", "10.0 KiB", "8.00 EiB"));
  for (const std::uint64_t bytes : {0ULL, 1ULL, 1000ULL, 1536ULL, 26'214'400ULL, 1ULL << 40U}) {
    EXPECT_EQ(parse_bytes(text(bytes)), Bytes{bytes});
  }
}

TEST(Format, OfSecondsPicksTheUnitAndAtMostFourDigits) {
  const auto text = [](double seconds) { return format(Seconds{seconds}); };
  EXPECT_THAT(each(text, {0, 12.3e-3, 12.3456e-3, 1.0, 0.99996, 10e-6, 59e-9}),
              ElementsAre("0 s", "12.3 ms", "12.35 ms", "1 s", "1 s", "10 us", "59 ns"));
  EXPECT_THAT(each(text, {0.25e-9, 90.5, 1500, 7200, -0.5, HUGE_VAL}),
              ElementsAre("0.25 ns", "90.5 s", "25 min", "2 h", "-500 ms", "inf s"));
  EXPECT_EQ(text(std::numeric_limits<double>::max()).substr(0, 4), "4993");
}

TEST(Format, OfRatesUsesPrefixesOfTen) {
  const auto flops = [](double work) { return format(Flops{work}); };
  const auto bandwidth = [](double speed) { return format(BytesPerSecond{speed}); };
  const auto speed = [](double rate) { return format(FlopsPerSecond{rate}); };
  EXPECT_THAT(each(flops, {3.2e9, 0}), ElementsAre("3.2 GFLOP", "0 FLOP"));
  EXPECT_THAT(each(bandwidth, {12.34e9, 999.9e6, 5300}),
              ElementsAre("12.3 GB/s", "1 GB/s", "5.3 kB/s"));
  EXPECT_THAT(each(speed, {165e9, 1.979e15, std::nan("")}),
              ElementsAre("165 GFLOP/s", "1.98 PFLOP/s", "nan FLOP/s"));
}

TEST(Format, OfCountsPutsThePrefixBesideTheNumber) {
  const auto text = [](double count) { return format_count(count, "steps/s"); };
  EXPECT_THAT(each(text, {12345, 123, 0.5, 0}),
              ElementsAre("12.3 k steps/s", "123 steps/s", "0.5 steps/s", "0 steps/s"));
  EXPECT_THAT(each(text, {999.6, -2.5e6, 1.5e22}),
              ElementsAre("1 k steps/s", "-2.5 M steps/s", "15000 E steps/s"));
}

TEST(Format, OfPercentRoundsAndNeverShowsMinusZero) {
  const auto text = [](double ratio) { return format_percent(ratio); };
  EXPECT_THAT(each(text, {0.123, 1.0, -0.0001, -0.05}),
              ElementsAre("12.3%", "100.0%", "0.0%", "-5.0%"));
  EXPECT_EQ(format_percent(0.98765, 2), "98.77%");
  EXPECT_EQ(format_percent(0.98765, 0), "99%");
}

}  // namespace
}  // namespace isoscale::units
