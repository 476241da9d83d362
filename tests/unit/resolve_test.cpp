// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "mesh/request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"

namespace isoscale::mesh {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using testing::StartsWith;

/// A model of 12 heads and 24 layers with a global batch of 64.
const std::vector<Constraint>& model_limits() {
  static const std::vector<Constraint> limits{
      {Axis::tp, 12, "heads"}, {Axis::pp, 24, "layers"}, {Axis::dp, 64, "global batch"}};
  return limits;
}

template <class Call>
std::string refusal(Call call) {
  try {
    (void)call();
  } catch (const base::UsageError& error) {
    return error.what();
  }
  ADD_FAILURE() << "was accepted";
  return {};
}
std::string parse_refusal(std::string_view text) {
  return refusal([&] { return parse_request(text); });
}
std::string resolve_refusal(const Request& request, int ranks,
                            const std::vector<Constraint>& limits = model_limits()) {
  return refusal([&] { return resolve(request, ranks, limits); });
}

TEST(ParseRequest, ReadsAxesInAnyOrder) {
  EXPECT_EQ(parse_request("dp=2,tp=4"), (Request{{Axis::tp, 4}, {Axis::dp, 2}}));
  EXPECT_EQ(parse_request(" pp = 8 , ep=1, cp=1 "),
            (Request{{Axis::pp, 8}, {Axis::cp, 1}, {Axis::ep, 1}}));
  EXPECT_EQ(parse_request("tp=1"), (Request{{Axis::tp, 1}}));
}

TEST(ParseRequest, RefusesUnknownAndRepeatedAxes) {
  EXPECT_THAT(parse_refusal("xp=2"), AllOf(HasSubstr("'xp'"), HasSubstr("tp, cp, ep, dp, pp")));
  EXPECT_THAT(parse_refusal("TP=2"), HasSubstr("'TP'"));
  EXPECT_THAT(parse_refusal("=2"), HasSubstr("''"));
  EXPECT_THAT(parse_refusal("dp=2,tp=2,dp=4"), HasSubstr("dp is given twice"));
}

TEST(ParseRequest, RefusesNumbersBelowOneAndWhatIsNoNumber) {
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

TEST(Resolve, NamedAxesMustMultiplyToTheRanks) {
  EXPECT_EQ(resolve({{Axis::dp, 2}, {Axis::tp, 2}, {Axis::pp, 2}}, 8, model_limits()),
            (Shape{.tp = 2, .dp = 2, .pp = 2}));
  EXPECT_THAT(resolve_refusal({{Axis::dp, 2}, {Axis::tp, 2}}, 8),
              AllOf(HasSubstr("tp=2,dp=2"), HasSubstr("to 4"), HasSubstr("8 ranks is dp=")));
}

TEST(Resolve, NamesTheNearestMeshByAxesChangedThenByTheirChange) {
  // dp=4 changes one axis by 0.4 in log2; tp or pp cannot make 8 out of 3.
  EXPECT_THAT(resolve_refusal({{Axis::dp, 3}, {Axis::tp, 2}}, 8),
              HasSubstr("8 ranks is dp=4,tp=2"));
  // dp is free, so only tp counts: 4 (0.42) is nearer to 3 than 2 (0.58).
  EXPECT_THAT(resolve_refusal({{Axis::tp, 3}}, 8),
              AllOf(HasSubstr("8 ranks"), HasSubstr("by 3"), HasSubstr("is dp=2,tp=4")));
  // tp=8 keeps the product but not the heads; one axis may change when dp is free.
  EXPECT_THAT(resolve_refusal({{Axis::tp, 8}}, 8),
              AllOf(HasSubstr("tp=8"), HasSubstr("heads = 12"), HasSubstr("is dp=2,tp=4")));
  // With dp named as well, two axes must change.
  EXPECT_THAT(resolve_refusal({{Axis::tp, 8}, {Axis::dp, 1}}, 8),
              AllOf(HasSubstr("tp=8"), HasSubstr("heads = 12"), HasSubstr("is dp=2,tp=4")));
  // One axis changed (tp 6 -> 12) wins over two nearer ones.
  EXPECT_THAT(resolve_refusal({{Axis::tp, 6}, {Axis::dp, 2}, {Axis::pp, 2}}, 48),
              Not(HasSubstr("is dp=2,tp=6,pp=2")));
}

TEST(Resolve, TheNearestMeshKeepsEveryLimit) {
  for (int ranks = 1; ranks <= 96; ++ranks) {
    for (const int tp : {1, 2, 3, 5, 8, 16}) {
      for (const int pp : {1, 2, 7, 24}) {
        try {
          const Shape shape = resolve({{Axis::tp, tp}, {Axis::pp, pp}}, ranks, model_limits());
          EXPECT_EQ(shape.size(), ranks);
          EXPECT_EQ(12 % shape.tp, 0);
          EXPECT_EQ(24 % shape.pp, 0);
          EXPECT_EQ(64 % shape.dp, 0);
        } catch (const base::UsageError& error) {
          const std::string message = error.what();
          const auto is = message.rfind(" is ");
          if (message.find("no mesh of") != std::string::npos) continue;
          ASSERT_NE(is, std::string::npos) << message;
          const std::string advice = message.substr(is + 4);
          // What the message proposes must itself be accepted.
          EXPECT_EQ(resolve(parse_request(advice), ranks, model_limits()).size(), ranks) << message;
        }
      }
    }
  }
}

TEST(Resolve, SaysSoWhenNoMeshWorks) {
  EXPECT_THAT(resolve_refusal({}, 7), AllOf(HasSubstr("dp=7"), HasSubstr("global batch = 64"),
                                            HasSubstr("no mesh of 7 ranks")));
}

TEST(Resolve, TheNearestMeshMayBeOneRank) {
  EXPECT_THAT(resolve_refusal({{Axis::tp, 2}}, 1), HasSubstr("1 rank is dp=1"));
}

TEST(Resolve, SurvivesProductsThatDoNotFitAnInt) {
  const int most = 2'147'483'647;
  EXPECT_THAT(resolve_refusal({{Axis::tp, most}, {Axis::pp, most}, {Axis::dp, most}}, 8),
              HasSubstr("on 8 ranks"));
  EXPECT_THAT(resolve_refusal({{Axis::tp, 65536}, {Axis::pp, 65536}}, 8),
              AllOf(HasSubstr("8 ranks"), HasSubstr("by 4294967296")));
}

TEST(Resolve, RefusesAWorldWithoutRanks) {
  EXPECT_THAT(resolve_refusal({}, 0), HasSubstr("at least 1 rank"));
  EXPECT_THAT(resolve_refusal({}, -4), HasSubstr("-4 ranks"));
}

TEST(Violation, NamesTheFirstBrokenLimit) {
  EXPECT_EQ(violation({.tp = 4, .dp = 8, .pp = 3}, model_limits()), std::nullopt);
  EXPECT_THAT(violation({.tp = 5, .pp = 5}, model_limits()),
              Optional(AllOf(StartsWith("tp=5"), EndsWith("heads = 12"))));
  EXPECT_THAT(violation({.pp = 5}, model_limits()),
              Optional(AllOf(StartsWith("pp=5"), EndsWith("layers = 24"))));
  EXPECT_THAT(violation({.tp = 24}, model_limits()),
              Optional(AllOf(StartsWith("tp=24"), EndsWith("heads = 12"))));
  EXPECT_EQ(violation({.tp = 5}, {}), std::nullopt);
}

}  // namespace
}  // namespace isoscale::mesh
