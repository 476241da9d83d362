// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Select, Spread and Rows against loops over f64.

#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using namespace program;  // NOLINT: the ops

struct Picked {
  std::vector<double> values, left;
  std::vector<std::int32_t> places;
};
/// Select as its description reads: the largest magnitudes, and of equal ones the first.
Picked pick(const std::vector<double>& src, std::size_t block, std::size_t keep) {
  Picked result{.values = {}, .left = src, .places = {}};
  for (std::size_t begin = 0; begin < src.size(); begin += block) {
    const std::size_t size = std::min(block, src.size() - begin);
    std::vector<std::int32_t> places(size);
    std::iota(places.begin(), places.end(), static_cast<std::int32_t>(begin));
    std::ranges::stable_sort(places, std::greater{}, [&](std::int32_t place) {
      return std::abs(src[static_cast<std::size_t>(place)]);
    });
    places.resize(std::min(keep, size));
    std::ranges::sort(places);
    places.resize(keep, -1);
    for (const std::int32_t place : places) {
      result.places.push_back(place);
      const auto at = static_cast<std::size_t>(place);
      result.values.push_back(place < 0 ? 0 : src[at]);
      if (place >= 0) result.left[at] = 0;
    }
  }
  return result;
}

struct Blocks {
  std::uint64_t count;
  std::uint32_t block, keep;

  [[nodiscard]] std::uint64_t entries() const { return (count + block - 1) / block * keep; }
  [[nodiscard]] std::string name() const {
    return fmt::format("{} by {} keep {}", count, block, keep);
  }
};
constexpr std::array<Blocks, 8> all_blocks{{{1, 1, 1},
                                            {40, 8, 3},
                                            {43, 8, 3},
                                            {41, 8, 3},
                                            {700, 700, 700},
                                            {1000, 300, 299},
                                            {5000, 4096, 41},
                                            {9000, 4096, 500}}};

/// Few different numbers: many are equal, of either sign.
std::vector<double> with_ties(std::uint64_t count) {
  std::vector<double> values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    values[i] = static_cast<double>((i * i * 7 + i * 3) % 13) - 6;
  }
  return values;
}

struct RowShape {
  std::uint32_t rows, columns, each;
  std::uint64_t src_stride, dst_stride;
  double scale;
};

class Lists : public EachExecutor {
 protected:
  void test_select(DType type, const Blocks& blocks, const std::vector<double>& src) {
    SCOPED_TRACE(blocks.name() + " " + std::string{name(type)});
    Sketch sketch;
    const Slice from = sketch.buffer(type, blocks.count);
    const Slice values = sketch.buffer(type, blocks.entries());
    const Slice places = sketch.buffer<std::int32_t>(blocks.entries());
    Select op{.block = blocks.block, .keep = blocks.keep, .src = from, .values = values};
    op.places = places;
    sketch.emit(op);
    const Picked expected = pick(all_rounded(type, src), blocks.block, blocks.keep);
    const auto session = played(sketch, with(from, type, src));
    EXPECT_EQ(get<std::int32_t>(*session, places), expected.places);
    EXPECT_EQ(read_as_doubles(*session, values, type), expected.values);
    EXPECT_EQ(read_as_doubles(*session, from, type), expected.left);
  }
  void test_spread(DType type, const Blocks& blocks, std::uint32_t parts);
  void test_rows(DType type, const RowShape& shape);
};

TEST_P(Lists, SelectTakesTheLargestAndOfEqualOnesTheFirst) {
  for (const Blocks& blocks : all_blocks) {
    for (const DType type : GetParam().floats) {
      test_select(type, blocks, with_ties(blocks.count));
      test_select(type, blocks, random_values<double>(blocks.count, 5));
      test_select(type, blocks, std::vector<double>(blocks.count, 0));
    }
  }
}

TEST_P(Lists, SelectTellsMagnitudesApartThatDifferInTheLastBit) {
  const double above = std::nextafter(1.0, 2.0);
  test_select(DType::f64, {4, 4, 1}, {1, above, -1, 1});
  test_select(DType::f64, {4, 4, 1}, {1, 1, 1, -above});
}

TEST_P(Lists, SelectTakesWhatIsNotANumberBeforeAllOthers) {
  Sketch sketch;
  const Slice src = sketch.buffer<float>(4), values = sketch.buffer<float>(2);
  const Slice places = sketch.buffer<std::int32_t>(2);
  sketch.emit(Select{.block = 4, .keep = 2, .src = src, .values = values, .places = places});
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto session =
      played(sketch, with<float>(src, {1, -infinity, 3, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_THAT(get<std::int32_t>(*session, places), ElementsAre(1, 3));
  EXPECT_EQ(get<float>(*session, values)[0], -infinity);
  EXPECT_TRUE(std::isnan(get<float>(*session, values)[1]));
  EXPECT_THAT(get<float>(*session, src), ElementsAre(1, 0, 3, 0));
}

/// Narrow types are summed in f32, and rounded once.
double summed(DType type, double value) {
  return rounded_to(type == DType::f64 ? DType::f64 : DType::f32, value);
}

void Lists::test_spread(DType type, const Blocks& blocks, std::uint32_t parts) {
  SCOPED_TRACE(fmt::format("{} {}, {} parts", blocks.name(), name(type), parts));
  Sketch sketch;
  const Slice values = sketch.buffer(type, blocks.entries() * parts);
  const Slice places = sketch.buffer<std::int32_t>(values.count);
  const Slice dst = sketch.buffer(type, blocks.count);
  Spread op{.block = blocks.block, .keep = blocks.keep, .parts = parts, .values = values};
  op.places = places;
  op.dst = dst;
  sketch.emit(op);
  std::vector<double> listed, sums(blocks.count);
  std::vector<std::int32_t> at;
  for (unsigned part = 0; part < parts; ++part) {
    const auto src = all_rounded(type, random_values<double>(blocks.count, 11 + part));
    const Picked picked = pick(src, blocks.block, blocks.keep);
    listed.insert(listed.end(), picked.values.begin(), picked.values.end());
    at.insert(at.end(), picked.places.begin(), picked.places.end());
    for (std::uint64_t i = 0; i < blocks.count; ++i) {
      sums[i] = summed(type, sums[i] + (src[i] - picked.left[i]));  // left: 0 where it was taken
    }
  }
  const auto session = played(sketch, with(values, type, listed), with(places, at),
                              with(dst, type, std::vector<double>(blocks.count, 9)));
  EXPECT_EQ(read_as_doubles(*session, dst, type), all_rounded(type, sums));
}

TEST_P(Lists, SpreadAddsPartsInOrderAndLeavesZeros) {
  for (const Blocks& blocks : all_blocks) {
    for (const std::uint32_t parts : {1U, 2U, 5U}) {
      for (const DType type : GetParam().floats) test_spread(type, blocks, parts);
    }
  }
}

void Lists::test_rows(DType type, const RowShape& shape) {
  SCOPED_TRACE(fmt::format("{} {} of {} x {}", name(type), shape.rows, shape.each, shape.columns));
  constexpr std::uint32_t sources = 7;
  Sketch sketch;
  const Slice src = sketch.buffer(type, sources * shape.src_stride);
  const Slice dst = sketch.buffer(type, shape.rows * shape.dst_stride);
  std::vector<std::uint32_t> from;
  for (std::uint32_t i = 0; i < shape.rows * shape.each; ++i) {
    from.push_back(i % 4 == 2 ? Rows::no_row : (i * 5 + i / 3) % sources);
  }
  Rows op{.rows = shape.rows, .columns = shape.columns, .each = shape.each, .scale = shape.scale};
  op.src = {.slice = src, .row_stride = shape.src_stride};
  op.dst = {.slice = dst, .row_stride = shape.dst_stride};
  op.from = from;
  sketch.emit(op);
  const auto values = all_rounded(type, random_values<double>(src.count, 3));
  std::vector<double> expected(dst.count, 9);
  const auto session = played(sketch, with(src, type, values), with(dst, type, expected));
  for (std::uint64_t row = 0; row < shape.rows; ++row) {
    for (std::uint64_t c = 0; c < shape.columns; ++c) {
      double sum = 0;
      for (std::uint64_t i = 0; i < shape.each; ++i) {
        const std::uint32_t source = from[row * shape.each + i];
        if (source != Rows::no_row) sum = summed(type, sum + values[source * shape.src_stride + c]);
      }
      expected[row * shape.dst_stride + c] = summed(type, sum * summed(type, shape.scale));
    }
  }
  EXPECT_EQ(read_as_doubles(*session, dst, type), all_rounded(type, expected));
}

TEST_P(Lists, RowsAreSumsOfTheRowsNamed) {
  for (const RowShape& shape : std::array<RowShape, 6>{{{1, 1, 1, 1, 1, 1},
                                                        {9, 33, 1, 33, 33, 1},
                                                        {9, 33, 1, 40, 36, 1},
                                                        {5, 300, 2, 300, 300, 0.5},
                                                        {300, 17, 3, 17, 20, 1},
                                                        {4, 8, 4, 8, 8, -1.0 / 3}}}) {
    for (const DType type : GetParam().floats) test_rows(type, shape);
  }
}

TEST_P(Lists, EveryRowsOpHasATableOfItsOwn) {
  Sketch sketch;
  const auto a = sketch.matrix<double>(3, 1), b = sketch.matrix<double>(3, 1);
  const auto c = sketch.matrix<double>(2, 1);
  sketch.emit(Rows{.rows = 3, .columns = 1, .src = a, .dst = b, .from = {2, 0, 1}});
  sketch.emit(Rows{.rows = 2, .columns = 1, .src = b, .dst = c, .from = {0, 2}});
  const auto session = played(sketch, with<double>(a.slice, {1, 2, 3}));
  EXPECT_THAT(get<double>(*session, b.slice), ElementsAre(3, 1, 2));
  EXPECT_THAT(get<double>(*session, c.slice), ElementsAre(3, 2));
}

TEST_P(Lists, RefuseExtentsAndTypesThatDoNotFit) {
  const auto refused = [&](const auto& change) {
    expect_refused([&](Sketch& sketch) {
      const Slice src = sketch.buffer<float>(10), values = sketch.buffer<float>(6);
      const Slice places = sketch.buffer<std::int32_t>(6);
      Select op{.block = 4, .keep = 2, .src = src, .values = values, .places = places};
      change(sketch, op);
      sketch.emit(op);
    });
  };
  refused([](Sketch&, Select& op) { op.keep = 0; });
  refused([](Sketch& sketch, Select& op) { op.values = sketch.buffer<double>(6); });
  refused([](Sketch& sketch, Select& op) { op.places = sketch.buffer<std::int64_t>(6); });
}

INSTANTIATE_TEST_SUITE_P(Executors, Lists, every_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
