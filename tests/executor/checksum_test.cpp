// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// Checksums against the formula, of every type and layout.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "program/fill_and_checksum.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using program::Checksum;
using program::DType;
using program::Matrix;
using program::Slice;

class Checksums : public EachExecutor {
 protected:
  /// Checksum and count of what is not finite, of a matrix over `raw` elements of a type.
  std::vector<std::int64_t> sums_of(DType type, const std::vector<std::byte>& raw,
                                    const Checksum& shape) {
    Sketch sketch;
    const Slice src = sketch.buffer(type, raw.size() / program::element_size(type));
    const Slice sum = sketch.buffer<std::int64_t>(4);
    Checksum op = shape;
    op.src.slice = src;
    op.sum = {.buffer = sum.buffer, .offset = 1, .count = 2};
    sketch.emit(op);
    const auto session = played(sketch, with(src, raw), with<std::int64_t>(sum, {7, 7, 7, 7}));
    std::vector<std::int64_t> all = get<std::int64_t>(*session, sum);
    EXPECT_EQ(all.front(), 7);  // its neighbours are left alone
    EXPECT_EQ(all.back(), 7);
    return {all[1], all[2]};
  }
  std::int64_t sum_of(DType type, const std::vector<std::byte>& raw, const Checksum& shape) {
    return sums_of(type, raw, shape).front();
  }
};

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 draw{3};
  std::vector<std::byte> raw(count);
  for (std::byte& byte : raw) byte = static_cast<std::byte>(draw());
  return raw;
}

std::uint64_t bits_at(const std::vector<std::byte>& raw, std::size_t index, std::size_t size) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, raw.data() + index * size, size);
  return bits;
}

constexpr std::array all_types{DType::f64,  DType::f32, DType::f16, DType::bf16, DType::e4m3,
                               DType::e5m2, DType::i64, DType::i32, DType::i8,   DType::u8};

TEST_P(Checksums, AreTheSumOfOneTermPerElement) {
  const Checksum shape{
      .rows = 5, .columns = 7, .batch = 3, .src = {.row_stride = 9, .batch_stride = 50}};
  for (const DType type : all_types) {
    const std::size_t size = program::element_size(type);
    const std::vector<std::byte> raw = random_bytes(150 * size);
    std::uint64_t expected = 0, index = 0;
    for (std::size_t b = 0; b < 3; ++b) {
      for (std::size_t row = 0; row < 5; ++row) {
        for (std::size_t column = 0; column < 7; ++column) {
          const std::uint64_t bits = bits_at(raw, b * 50 + row * 9 + column, size);
          expected += program::checksum_term(bits, index++);
        }
      }
    }
    EXPECT_EQ(static_cast<std::uint64_t>(sum_of(type, raw, shape)), expected)
        << program::name(type);
  }
}

TEST_P(Checksums, ChangeWithEveryBitAndWithTheOrderAndNotWithWhatLiesBetween) {
  const Checksum shape{.rows = 2, .columns = 8, .src = {.row_stride = 16}};
  const std::vector<std::byte> raw = random_bytes(24 * 2);
  const std::int64_t sum = sum_of(DType::bf16, raw, shape);
  for (const std::size_t element : {0, 3, 7, 16, 23}) {
    for (int bit = 0; bit < 16; ++bit) {
      std::vector<std::byte> flipped = raw;
      flipped[element * 2 + static_cast<std::size_t>(bit / 8)] ^=
          static_cast<std::byte>(1 << (bit % 8));
      EXPECT_NE(sum_of(DType::bf16, flipped, shape), sum) << element << " " << bit;
    }
  }
  std::vector<std::byte> swapped = raw;
  std::swap_ranges(swapped.begin(), swapped.begin() + 2, swapped.begin() + 2);
  EXPECT_NE(sum_of(DType::bf16, swapped, shape), sum);
  std::vector<std::byte> between = raw;
  between[10 * 2] ^= std::byte{1};
  EXPECT_EQ(sum_of(DType::bf16, between, shape), sum);
}

TEST_P(Checksums, CountWhatIsNotFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{0, -0.0F, 1e38F, infinity, -infinity, std::nanf(""), 1e-40F};
  const auto bytes = std::as_bytes(std::span{values});
  EXPECT_EQ(sums_of(DType::f32, {bytes.begin(), bytes.end()},
                    {.rows = 1, .columns = 7, .src = {.row_stride = 7}})[1],
            3);
  // All bits set is a number in integers, and none in any floating type.
  for (const DType type : all_types) {
    const bool is_integer = type >= DType::i64;
    const std::vector<std::byte> ones(4 * program::element_size(type), std::byte{0xff});
    EXPECT_EQ(sums_of(type, ones, {.rows = 1, .columns = 4, .src = {.row_stride = 4}})[1],
              is_integer ? 0 : 4)
        << program::name(type);
  }
}

TEST_P(Checksums, FlipTheBitsThatTheyAreToldToBeforeTheySumUp) {
  const Checksum shape{.rows = 3, .columns = 4, .src = {.row_stride = 6}};
  for (const DType type : all_types) {
    const std::size_t size = program::element_size(type);
    const std::vector<std::byte> raw = random_bytes(16 * size);
    Sketch sketch;
    const Slice src = sketch.buffer(type, 16), sum = sketch.buffer<std::int64_t>(2);
    const Slice flip = sketch.buffer<std::int64_t>(2);
    Checksum op = shape;
    op.src.slice = src;
    op.sum = sum;
    op.flip = flip;
    sketch.emit(op);
    const auto bit = static_cast<std::int64_t>(8 * size - 2);
    const auto session = played(  // row 1, column 2
        sketch, with(src, raw), with<std::int64_t>(flip, {6, std::int64_t{1} << bit}));
    std::vector<std::byte> expected = raw, left(raw.size());
    expected[8 * size + size - 1] ^= std::byte{64};
    session->read(src, left);
    EXPECT_EQ(left, expected) << program::name(type);
    EXPECT_EQ(get<std::int64_t>(*session, sum)[0], sum_of(type, expected, shape));
    put<std::int64_t>(*session, flip, {6, 0});
    session->play(program::Section::step, Trace::off);
    session->read(src, left);
    EXPECT_EQ(left, expected) << program::name(type);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Checksums, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
