// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// What the collectives benchmark plans: sizes as nccl-tests realises them, programs that play to
// their end, volumes by formula, data whose sums are exact.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.hpp"
#include "program/check.hpp"
#include "program/facts.hpp"
#include "program/low_precision.hpp"
#include "workloads/api/options.hpp"
#include "workloads/bench/exact_data.hpp"
#include "workloads/collectives/collectives.hpp"

namespace isoscale::workloads {
namespace {

using program::DType;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const auto& work) {
  try {
    work();
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

Request request_on(int ranks, Options options) {
  Request request;
  request.mesh.dp = ranks;
  request.options = std::move(options);
  return request;
}

TEST(Sizes, AreListsAndRanges) {
  EXPECT_THAT(parse_sizes("sizes", "8..64"), ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(parse_sizes("sizes", "8..100*3"), ElementsAre(8, 24, 72));
  EXPECT_THAT(parse_sizes("sizes", "1MiB,4,4..5"), ElementsAre(4, 1048576));
  EXPECT_EQ(parse_sizes("sizes", "8..1GiB").size(), 28U);
}

TEST(Sizes, WithoutMeaningAreRefused) {
  const auto sizes = [](std::string_view text) {
    return refusal([&] { static_cast<void>(parse_sizes("sizes", text)); });
  };
  EXPECT_THAT(sizes("64..8"), HasSubstr("from large to small"));
  EXPECT_THAT(sizes("8..64*1"), HasSubstr("from 2 to"));
  EXPECT_THAT(sizes("8..64*x"), HasSubstr("from 2 to"));
  EXPECT_THAT(sizes("8,,9"), HasSubstr("an empty part"));
  EXPECT_THAT(sizes("8,8"), HasSubstr("twice"));
  EXPECT_THAT(sizes("0..8"), HasSubstr("0 bytes"));
  EXPECT_THAT(sizes("64M"), HasSubstr("64M"));
  EXPECT_THAT(sizes(".."), HasSubstr("sizes"));
}

TEST(Pattern, SumsAreExactOnAnyNumberOfRanks) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::e4m3,
                           DType::e5m2, DType::i64, DType::i32, DType::i8, DType::u8}) {
    for (const int ranks : {1, 2, 3, 8, 15, 64, 257, 1000}) {
      std::vector<int> all(static_cast<std::size_t>(ranks));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_NO_THROW(static_cast<void>(pattern_table(type, ranks, all, program::Reduction::sum)))
          << program::name(type) << " on " << ranks;
    }
  }
}

/// The reduction of two ranks' patterns, added in the type itself.
TEST(Pattern, TablesAreTheReductionInTheTypeItself) {
  const std::vector<int> first{0}, second{1}, both{0, 1};
  const auto value = [](const std::vector<std::byte>& table, std::size_t i) {
    float element = 0;
    std::memcpy(&element, table.data() + i * sizeof element, sizeof element);
    return element;
  };
  const auto a = pattern_table(DType::f32, 2, first, program::Reduction::sum);
  const auto b = pattern_table(DType::f32, 2, second, program::Reduction::sum);
  const auto sum = pattern_table(DType::f32, 2, both, program::Reduction::sum);
  const auto least = pattern_table(DType::f32, 2, both, program::Reduction::min);
  const auto most = pattern_table(DType::f32, 2, both, program::Reduction::max);
  int different = 0;
  for (std::size_t i = 0; i < pattern_period; ++i) {
    EXPECT_EQ(value(sum, i), value(a, i) + value(b, i));
    EXPECT_EQ(value(least, i), std::min(value(a, i), value(b, i)));
    EXPECT_EQ(value(most, i), std::max(value(a, i), value(b, i)));
    different += value(a, i) != value(b, i) ? 1 : 0;
  }
  EXPECT_GT(different, 60000);  // two ranks' data are not alike
}

TEST(Pattern, NarrowSumsUseManyValues) {
  EXPECT_EQ(pattern_grid(DType::f32, 8), (PatternGrid{.range = 127}));
  EXPECT_EQ(pattern_grid(DType::bf16, 8), (PatternGrid{.range = 32}));
  EXPECT_EQ(pattern_grid(DType::bf16, 256), (PatternGrid{.range = 1}));
  EXPECT_GT(pattern_grid(DType::bf16, 512).one_in, 1U);
  EXPECT_EQ(pattern_grid(DType::i8, 4096), PatternGrid{});
}

TEST(Pattern, ExactIntegersAreThoseOfTheFormats) {
  EXPECT_EQ(exact_integers(DType::f16), 2048);
  EXPECT_EQ(exact_integers(DType::bf16), 256);
  EXPECT_EQ(exact_integers(DType::e4m3), 16);
  EXPECT_EQ(exact_integers(DType::e5m2), 8);
  EXPECT_EQ(exact_integers(DType::f32), 16777216);
  EXPECT_FALSE(exact_integers(DType::i32).has_value());
}

using namespace collectives;  // NOLINT: the names under test

std::vector<CollectiveCase> cases(const Request& request) {
  return cases_of(request, setting_of(request));
}

/// (count/n) & ~(16/size - 1) for operations with parts, nccl-tests 2.19.
TEST(Collectives, SizesAreRealisedLikeNcclTests) {
  for (const int ranks : {2, 3, 4, 6}) {
    for (const CollectiveCase& one : cases(request_on(ranks, {{"sizes", "1000,4096"},
                                                              {"op", "all_gather,all_reduce"},
                                                              {"in_place", "no"},
                                                              {"types", "f32,f64,u8"}}))) {
      const std::uint64_t size = program::element_size(one.type);
      if (one.operation == Operation::all_reduce) {
        EXPECT_EQ(one.bytes, one.count * size);
        continue;
      }
      const auto n = static_cast<std::uint64_t>(ranks);
      const bool is_small = one.bytes <= 1000;
      const std::uint64_t expected = ((is_small ? 1000 : 4096) / size / n) & ~(16 / size - 1);
      EXPECT_EQ(one.count, expected);
      EXPECT_EQ(one.bytes, expected * size * n);
    }
  }
}

TEST(Collectives, SmallSizesWithoutAWholePartAreLeftOut) {
  const auto few =
      cases(request_on(4, {{"sizes", "8..128"}, {"op", "all_gather"}, {"in_place", "no"}}));
  ASSERT_EQ(few.size(), 2U);  // 64 and 128: 16 bytes a rank and more
  EXPECT_EQ(few.front().bytes, 64U);
}

TEST(Collectives, OptionsWithoutMeaningAreRefused) {
  const auto said = [](int ranks, Options options) {
    return refusal([&] { static_cast<void>(cases(request_on(ranks, std::move(options)))); });
  };
  EXPECT_THAT(said(2, {{"root", "2"}}), HasSubstr("root=2: a group has 2 ranks"));
  EXPECT_THAT(said(2, {{"axis", "tp"}}), HasSubstr("has no axis tp"));
  EXPECT_THAT(said(4, {{"op", "all_gather"}, {"sizes", "8"}}), HasSubstr("nothing to measure"));
  EXPECT_THAT(said(2, {{"op", "sendrecv"}, {"in_place", "yes"}}), HasSubstr("nothing to measure"));
  Request crossed = request_on(2, {});
  crossed.mesh.tp = 2;
  EXPECT_THAT(refusal([&] { static_cast<void>(cases(crossed)); }), HasSubstr("in one row"));
}

class Meshes : public testing::TestWithParam<mesh::Shape> {};

TEST_P(Meshes, EveryProgramPlaysToItsEnd) {
  Request request;
  request.mesh = GetParam();
  request.options = {{"sizes", "8..4KiB*8"},
                     {"implementation", "library,ring,tree,recursive-doubling"},
                     {"reduction", "sum,max"},
                     {"groups", "both"},
                     {"rotate", "16KiB"}};
  if (request.mesh.tp > 1) request.options["axis"] = "tp";
  const Bench bench = build(request, 0);
  EXPECT_NO_THROW(program::check(bench.set));
  EXPECT_EQ(bench.cases.size(), bench.rows.size());
}

INSTANTIATE_TEST_SUITE_P(Small, Meshes,
                         testing::Values(mesh::Shape{}, mesh::Shape{.dp = 2}, mesh::Shape{.dp = 3},
                                         mesh::Shape{.dp = 4}, mesh::Shape{.dp = 7},
                                         mesh::Shape{.dp = 8}, mesh::Shape{.tp = 2, .dp = 2},
                                         mesh::Shape{.tp = 4, .pp = 2}),
                         [](const auto& shape) {
                           std::string text = mesh::to_string(shape.param);
                           std::erase_if(text, [](char c) { return c == '=' || c == ','; });
                           return "mesh" + text;
                         });

/// The bytes that a row is named after are those that its program moves.
TEST(Collectives, RowsSayWhatTheProgramsMove) {
  const Request request =
      request_on(4, {{"sizes", "64..4KiB*4"}, {"rotate", "1KiB"}, {"reduction", "sum"}});
  const Bench bench = build(request, 0);
  for (const Case& one : bench.cases) {
    const RowSpec& row = bench.rows[one.row_begin];
    const program::Outline outline = program::outline(bench.set.of(1), one.section, request.mesh);
    ASSERT_EQ(outline.ops.size(), one.calls);
    for (const program::OutlineOp& op : outline.ops) {
      EXPECT_EQ(static_cast<double>(op.bytes), row.number.at("bytes")) << row.text.at("op");
    }
  }
}

/// Volumes a rank sends by textbook: ring all_reduce 2 (n-1)/n S, gather and scatter (n-1)/n S;
/// recursive doubling log2(n) S, its gather and scatter (n-1)/n S.
TEST(Collectives, TextbookAlgorithmsSendTheirTextbookVolume) {
  constexpr int n = 8;
  const Request request = request_on(n, {{"sizes", "4KiB"},
                                         {"op", "all_reduce,all_gather,reduce_scatter"},
                                         {"in_place", "no"},
                                         {"rotate", "4KiB"},
                                         {"implementation", "ring,recursive-doubling"}});
  const Bench bench = build(request, 0);
  ASSERT_EQ(bench.cases.size(), 6U);
  for (const Case& one : bench.cases) {
    const RowSpec& row = bench.rows[one.row_begin];
    const program::Outline outline = program::outline(bench.set.of(3), one.section, request.mesh);
    std::uint64_t sent = 0;
    for (const program::OutlineTransfer& transfer : outline.transfers) {
      if (transfer.direction == program::Direction::send) sent += transfer.bytes;
    }
    const bool is_ring = row.text.at("implementation") == "ring";
    const bool is_all_reduce = row.text.at("op") == "all_reduce";
    const double share = !is_all_reduce ? (n - 1.0) / n
                         : is_ring      ? 2 * (n - 1.0) / n
                                        : std::log2(n);
    EXPECT_EQ(static_cast<double>(sent), share * row.number.at("bytes"))
        << row.text.at("implementation") << " " << row.text.at("op");
  }
}

TEST(Collectives, AloneOnlyTheFirstGroupPlays) {
  Request request;
  request.mesh = {.tp = 2, .dp = 2};
  request.options = {
      {"axis", "tp"}, {"groups", "one"}, {"op", "all_reduce"}, {"sizes", "64"}, {"in_place", "no"}};
  const Bench bench = build(request, 0);
  ASSERT_EQ(bench.rows.size(), 1U);
  EXPECT_THAT(bench.rows.front().ranks, ElementsAre(0, 1));
  EXPECT_FALSE(bench.set.of(1).section(bench.cases.front().section).ops.empty());
  EXPECT_TRUE(bench.set.of(2).section(bench.cases.front().section).ops.empty());
  EXPECT_TRUE(expect(request, 0, 0, 2).empty());
}

}  // namespace
}  // namespace isoscale::workloads
