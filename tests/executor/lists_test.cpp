// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Select, Spread and Rows against loops over f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "program/builder.hpp"
#include "program/low_precision.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::DType;
using program::Rows;
using program::Select;
using program::Slice;
using program::Spread;

class Lists : public EachExecutor {};
class NarrowLists : public EachExecutor {};

/// What is stored of `values`, rounded to the type, and back.
std::vector<std::byte> stored(DType type, const std::vector<double>& values) {
  std::vector<std::byte> raw(values.size() * program::element_size(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* const to = raw.data() + i * program::element_size(type);
    if (const auto format = program::narrow_format(type)) {
      const std::uint16_t code = encode(*format, values[i]);
      std::memcpy(to, &code, program::element_size(type));
    } else if (type == DType::f32) {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(to, &value, sizeof value);
    } else {
      std::memcpy(to, &values[i], sizeof values[i]);
    }
  }
  return raw;
}
std::vector<double> loaded(DType type, const std::vector<std::byte>& raw) {
  std::vector<double> values(raw.size() / program::element_size(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* const from = raw.data() + i * program::element_size(type);
    if (const auto format = program::narrow_format(type)) {
      std::uint16_t code = 0;
      std::memcpy(&code, from, program::element_size(type));
      values[i] = static_cast<double>(decode(*format, code));
    } else if (type == DType::f32) {
      float value = 0;
      std::memcpy(&value, from, sizeof value);
      values[i] = double{value};
    } else {
      std::memcpy(&values[i], from, sizeof values[i]);
    }
  }
  return values;
}

void write(Session& session, const Slice& slice, DType type, const std::vector<double>& values) {
  session.write(slice, stored(type, values));
}
std::vector<double> read(Session& session, const Slice& slice, DType type) {
  std::vector<std::byte> raw(slice.count * program::element_size(type));
  session.read(slice, raw);
  return loaded(type, raw);
}

struct Picked {
  std::vector<double> values, left;
  std::vector<std::int32_t> places;
};
/// Select as its description reads: the largest that is left, and of equal ones the first.
Picked pick(std::vector<double> src, std::size_t block, std::size_t keep) {
  Picked result{.values = {}, .left = src, .places = {}};
  for (std::size_t begin = 0; begin < src.size(); begin += block) {
    const std::size_t end = std::min(begin + block, src.size());
    std::vector<std::int32_t> places;
    std::vector<bool> taken(end - begin);
    for (std::size_t k = 0; k < std::min(keep, end - begin); ++k) {
      std::size_t best = end;
      for (std::size_t i = begin; i < end; ++i) {
        if (taken[i - begin]) continue;
        if (best == end || std::abs(src[i]) > std::abs(src[best])) best = i;
      }
      taken[best - begin] = true;
      places.push_back(static_cast<std::int32_t>(best));
    }
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

void test_select(const std::function<std::unique_ptr<Session>(const Sketch&)>& prepare, DType type,
                 const Blocks& blocks, const std::vector<double>& src) {
  SCOPED_TRACE(testing::Message() << program::name(type) << " " << blocks.count << " by "
                                  << blocks.block << " keep " << blocks.keep);
  Sketch sketch;
  const std::uint64_t entries = (blocks.count + blocks.block - 1) / blocks.block * blocks.keep;
  const Slice from = sketch.buffer(type, blocks.count), values = sketch.buffer(type, entries);
  const Slice places = sketch.buffer<std::int32_t>(entries);
  sketch.emit(Select{
      .block = blocks.block, .keep = blocks.keep, .src = from, .values = values, .places = places});
  const auto session = prepare(sketch);
  write(*session, from, type, src);
  const Picked expected = pick(loaded(type, stored(type, src)), blocks.block, blocks.keep);
  session->play(program::Section::step, Trace::off);
  EXPECT_EQ(get<std::int32_t>(*session, places), expected.places);
  EXPECT_EQ(read(*session, values, type), expected.values);
  EXPECT_EQ(read(*session, from, type), expected.left);
}

TEST_P(Lists, SelectTakesTheLargestAndOfEqualOnesTheFirst) {
  const auto ready = [&](const Sketch& sketch) { return prepare(sketch); };
  for (const Blocks& blocks : all_blocks) {
    for (const DType type : {DType::f64, DType::f32}) {
      test_select(ready, type, blocks, with_ties(blocks.count));
      test_select(ready, type, blocks, random_values<double>(blocks.count, 5));
      test_select(ready, type, blocks, std::vector<double>(blocks.count, 0));
    }
  }
}

TEST_P(NarrowLists, SelectTakesTheLargestAndOfEqualOnesTheFirst) {
  const auto ready = [&](const Sketch& sketch) { return prepare(sketch); };
  for (const Blocks& blocks : all_blocks) {
    for (const DType type : {DType::f16, DType::bf16}) {
      test_select(ready, type, blocks, with_ties(blocks.count));
      test_select(ready, type, blocks, random_values<double>(blocks.count, 5));
    }
  }
}

TEST_P(Lists, SelectTellsMagnitudesApartThatDifferInTheLastBit) {
  const double above = std::nextafter(1.0, 2.0);
  for (const std::vector<double>& src :
       {std::vector<double>{1, above, -1, 1}, std::vector<double>{1, 1, 1, -above}}) {
    test_select([&](const Sketch& sketch) { return prepare(sketch); }, DType::f64, {4, 4, 1}, src);
  }
}

TEST_P(Lists, SelectTakesWhatIsNotANumberBeforeAllOthers) {
  Sketch sketch;
  const Slice src = sketch.buffer<float>(4), values = sketch.buffer<float>(2);
  const Slice places = sketch.buffer<std::int32_t>(2);
  sketch.emit(Select{.block = 4, .keep = 2, .src = src, .values = values, .places = places});
  const auto session = prepare(sketch);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  put<float>(*session, src, {1, -infinity, 3, std::numeric_limits<float>::quiet_NaN()});
  session->play(program::Section::step, Trace::off);
  EXPECT_THAT(get<std::int32_t>(*session, places), testing::ElementsAre(1, 3));
  EXPECT_EQ(get<float>(*session, values)[0], -infinity);
  EXPECT_TRUE(std::isnan(get<float>(*session, values)[1]));
  EXPECT_THAT(get<float>(*session, src), testing::ElementsAre(1, 0, 3, 0));
}

void test_spread(const std::function<std::unique_ptr<Session>(const Sketch&)>& prepare, DType type,
                 const Blocks& blocks, std::uint32_t parts) {
  SCOPED_TRACE(testing::Message() << program::name(type) << " " << blocks.count << " by "
                                  << blocks.block << " keep " << blocks.keep << ", " << parts);
  Sketch sketch;
  const std::uint64_t entries =
      (blocks.count + blocks.block - 1) / blocks.block * blocks.keep * parts;
  const Slice values = sketch.buffer(type, entries), dst = sketch.buffer(type, blocks.count);
  const Slice places = sketch.buffer<std::int32_t>(entries);
  sketch.emit(Spread{.block = blocks.block,
                     .keep = blocks.keep,
                     .parts = parts,
                     .values = values,
                     .places = places,
                     .dst = dst});
  const auto session = prepare(sketch);
  std::vector<double> listed, sums(blocks.count);
  std::vector<std::int32_t> at;
  for (unsigned part = 0; part < parts; ++part) {
    const auto src = loaded(type, stored(type, random_values<double>(blocks.count, 11 + part)));
    const Picked picked = pick(src, blocks.block, blocks.keep);
    listed.insert(listed.end(), picked.values.begin(), picked.values.end());
    at.insert(at.end(), picked.places.begin(), picked.places.end());
    for (std::uint64_t i = 0; i < blocks.count; ++i) {
      const double sum = sums[i] + (src[i] - picked.left[i]);  // left: 0 where it was taken
      sums[i] = type == DType::f64 ? sum : static_cast<double>(static_cast<float>(sum));
    }
  }
  write(*session, values, type, listed);
  put(*session, places, at);
  write(*session, dst, type, std::vector<double>(blocks.count, 9));
  session->play(program::Section::step, Trace::off);
  EXPECT_EQ(read(*session, dst, type), loaded(type, stored(type, sums)));
}

TEST_P(Lists, SpreadAddsPartsInOrderAndLeavesZeros) {
  for (const Blocks& blocks : all_blocks) {
    for (const std::uint32_t parts : {1U, 2U, 5U}) {
      for (const DType type : {DType::f64, DType::f32}) {
        test_spread([&](const Sketch& sketch) { return prepare(sketch); }, type, blocks, parts);
      }
    }
  }
}

TEST_P(NarrowLists, SpreadAddsInF32AndRoundsOnce) {
  for (const Blocks& blocks : all_blocks) {
    for (const DType type : {DType::f16, DType::bf16}) {
      test_spread([&](const Sketch& sketch) { return prepare(sketch); }, type, blocks, 3);
    }
  }
}

struct RowShape {
  std::uint32_t rows, columns, each;
  std::uint64_t src_stride, dst_stride;
  double scale;
};

void test_rows(const std::function<std::unique_ptr<Session>(const Sketch&)>& prepare, DType type,
               const RowShape& shape) {
  SCOPED_TRACE(testing::Message() << program::name(type) << " " << shape.rows << " of "
                                  << shape.each << " x " << shape.columns);
  constexpr std::uint32_t sources = 7;
  Sketch sketch;
  const Slice src = sketch.buffer(type, sources * shape.src_stride);
  const Slice dst = sketch.buffer(type, shape.rows * shape.dst_stride);
  std::vector<std::uint32_t> from;
  for (std::uint32_t i = 0; i < shape.rows * shape.each; ++i) {
    from.push_back(i % 4 == 2 ? Rows::no_row : (i * 5 + i / 3) % sources);
  }
  sketch.emit(Rows{.rows = shape.rows,
                   .columns = shape.columns,
                   .each = shape.each,
                   .scale = shape.scale,
                   .src = {.slice = src, .row_stride = shape.src_stride},
                   .dst = {.slice = dst, .row_stride = shape.dst_stride},
                   .from = from});
  const auto session = prepare(sketch);
  const auto values = loaded(type, stored(type, random_values<double>(src.count, 3)));
  write(*session, src, type, values);
  std::vector<double> expected(dst.count, 9);
  write(*session, dst, type, expected);
  session->play(program::Section::step, Trace::off);
  const auto rounded = [type](double value) {
    return type == DType::f64 ? value : static_cast<double>(static_cast<float>(value));
  };
  for (std::uint64_t row = 0; row < shape.rows; ++row) {
    for (std::uint64_t c = 0; c < shape.columns; ++c) {
      double sum = 0;
      for (std::uint64_t i = 0; i < shape.each; ++i) {
        const std::uint32_t source = from[row * shape.each + i];
        if (source != Rows::no_row) sum = rounded(sum + values[source * shape.src_stride + c]);
      }
      expected[row * shape.dst_stride + c] = rounded(sum * rounded(shape.scale));
    }
  }
  EXPECT_EQ(read(*session, dst, type), loaded(type, stored(type, expected)));
}

constexpr std::array<RowShape, 6> row_shapes{{{1, 1, 1, 1, 1, 1},
                                              {9, 33, 1, 33, 33, 1},
                                              {9, 33, 1, 40, 36, 1},
                                              {5, 300, 2, 300, 300, 0.5},
                                              {300, 17, 3, 17, 20, 1},
                                              {4, 8, 4, 8, 8, -1.0 / 3}}};

TEST_P(Lists, RowsAreSumsOfTheRowsNamed) {
  for (const RowShape& shape : row_shapes) {
    for (const DType type : {DType::f64, DType::f32}) {
      test_rows([&](const Sketch& sketch) { return prepare(sketch); }, type, shape);
    }
  }
}

TEST_P(NarrowLists, RowsAreSummedInF32AndRoundedOnce) {
  for (const RowShape& shape : row_shapes) {
    for (const DType type : {DType::f16, DType::bf16}) {
      test_rows([&](const Sketch& sketch) { return prepare(sketch); }, type, shape);
    }
  }
}

TEST_P(Lists, EveryRowsOpHasATableOfItsOwn) {
  Sketch sketch;
  const Slice a = sketch.buffer<double>(3), b = sketch.buffer<double>(3);
  const Slice c = sketch.buffer<double>(2);
  const auto column = [](const Slice& slice) {
    return program::Matrix{.slice = slice, .row_stride = 1};
  };
  sketch.emit(Rows{.rows = 3, .columns = 1, .src = column(a), .dst = column(b), .from = {2, 0, 1}});
  sketch.emit(Rows{.rows = 2, .columns = 1, .src = column(b), .dst = column(c), .from = {0, 2}});
  const auto session = prepare(sketch);
  put<double>(*session, a, {1, 2, 3});
  session->play(program::Section::step, Trace::off);
  EXPECT_THAT(get<double>(*session, b), testing::ElementsAre(3, 1, 2));
  EXPECT_THAT(get<double>(*session, c), testing::ElementsAre(3, 2));
}

TEST_P(Lists, RefuseExtentsIndicesAndTypesThatDoNotFit) {
  const auto refused = [&](const auto& change) {
    Sketch sketch;
    const Slice src = sketch.buffer<float>(10), values = sketch.buffer<float>(6);
    const Slice places = sketch.buffer<std::int32_t>(6);
    Select op{.block = 4, .keep = 2, .src = src, .values = values, .places = places};
    change(sketch, op);
    sketch.emit(op);
    EXPECT_THROW(static_cast<void>(prepare(sketch)), base::Error);
  };
  refused([](Sketch&, Select& op) { op.keep = 0; });
  refused([](Sketch&, Select& op) { op.keep = 5; });
  refused([](Sketch&, Select& op) { op.block = 5; });  // two blocks: four entries
  refused([](Sketch&, Select& op) { op.values.count = 5; });
  refused([](Sketch& sketch, Select& op) { op.values = sketch.buffer<double>(6); });
  refused([](Sketch& sketch, Select& op) { op.places = sketch.buffer<std::int64_t>(6); });
  refused([](Sketch&, Select& op) { op.values = {.buffer = op.src.buffer, .count = 6}; });
  Sketch sketch;
  const program::Matrix src{.slice = sketch.buffer<float>(12), .row_stride = 4};
  const program::Matrix dst{.slice = sketch.buffer<float>(8), .row_stride = 4};
  sketch.emit(Rows{.rows = 2, .columns = 4, .src = src, .dst = dst, .from = {2, 3}});
  EXPECT_THROW(static_cast<void>(prepare(sketch)), base::Error) << "row 3 of three";
}

TEST(ListChecks, BuilderRefusesWhatDoesNotFit) {
  program::Builder builder{mesh::Shape{}};
  const auto id = [&](DType type, std::uint64_t count) {
    return builder.allocate({.dtype = type, .count = count});
  };
  const Slice src = builder.whole(id(DType::f32, 8)), dst = builder.whole(id(DType::f32, 8));
  builder.emit(0, program::Fill{.dst = src, .shard = {.extents = {1, 1, 8}, .local = {0, 0, 1}}});
  const program::Matrix from{.slice = src, .row_stride = 4}, to{.slice = dst, .row_stride = 4};
  const auto emit = [&](program::Payload payload) { builder.emit(0, std::move(payload)); };
  EXPECT_THROW(emit(Rows{.rows = 2, .columns = 4, .src = from, .dst = to, .from = {0}}),
               base::Error);
  EXPECT_THROW(emit(Rows{.rows = 1, .columns = 4, .src = from, .dst = to, .from = {2}}),
               base::Error);
  EXPECT_THROW(emit(Rows{.rows = 3, .columns = 4, .src = from, .dst = to, .from = {0, 1, 0}}),
               base::Error);
  EXPECT_THROW(emit(Rows{.rows = 1, .columns = 4, .each = 0, .src = from, .dst = to, .from = {}}),
               base::Error);
  EXPECT_THROW(emit(Select{.block = 4, .keep = 2, .src = src, .values = dst, .places = dst}),
               base::Error);
  EXPECT_THROW(
      emit(Spread{.block = 4, .keep = 2, .parts = 0, .values = src, .places = src, .dst = dst}),
      base::Error);
  EXPECT_NO_THROW(
      emit(Rows{.rows = 2, .columns = 4, .src = from, .dst = to, .from = {1, Rows::no_row}}));
}

INSTANTIATE_TEST_SUITE_P(Executors, Lists, each_backend(), name_of);
INSTANTIATE_TEST_SUITE_P(Executors, NarrowLists, each_narrow_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
