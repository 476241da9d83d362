// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Fills and checksums against their formulas, of every type and layout.

#include <bit>
#include <numbers>

#include "executor/op_arguments.hpp"
#include "tests/executor/executors.hpp"

namespace isoscale::executor {
namespace {

using namespace program;  // NOLINT: the ops

class Checksums : public EachExecutor {
 protected:
  /// Plays the checksum of a matrix over `raw`, which it keeps in the first buffer.
  SessionPtr summed(DType type, const std::vector<std::byte>& raw, Checksum op,
                    const std::vector<std::int64_t>& flip = {}) {
    Sketch sketch;
    const Slice src = sketch.buffer(type, raw.size() / program::element_size(type));
    const Slice sum = sketch.buffer<std::int64_t>(4), flips = sketch.buffer<std::int64_t>(2);
    op.src.slice = src;
    op.sum = {.buffer = sum.buffer, .offset = 1, .count = 2};
    if (!flip.empty()) op.flip = flips;
    sketch.emit(op);
    return played(sketch, with(src, raw), with<std::int64_t>(sum, {7, 7, 7, 7}),
                  with(flips, flip.empty() ? std::vector<std::int64_t>{0, 0} : flip));
  }
  /// Checksum and count of what is not finite; the elements beside them are left alone.
  static std::array<std::int64_t, 2> sums_in(Session& session) {
    const auto all = get<std::int64_t>(session, {.buffer = 1, .count = 4});
    EXPECT_EQ(all.front(), 7);
    EXPECT_EQ(all.back(), 7);
    return {all[1], all[2]};
  }
  std::array<std::int64_t, 2> sums_of(DType type, const std::vector<std::byte>& raw,
                                      const Checksum& op) {
    return sums_in(*summed(type, raw, op));
  }
};

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 draw{3};
  std::vector<std::byte> raw(count);
  for (std::byte& byte : raw) byte = static_cast<std::byte>(draw());
  return raw;
}

TEST_P(Checksums, AreTheSumOfOneTermPerElement) {
  const Checksum shape{
      .rows = 5, .columns = 7, .batch = 3, .src = {.row_stride = 9, .batch_stride = 50}};
  for (const DType type : all_types) {
    const std::size_t size = program::element_size(type);
    const std::vector<std::byte> raw = random_bytes(150 * size);
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < 3 * 5 * 7; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, raw.data() + (i / 35 * 50 + i / 7 % 5 * 9 + i % 7) * size, size);
      expected += program::checksum_term(bits, i);
    }
    EXPECT_EQ(static_cast<std::uint64_t>(sums_of(type, raw, shape)[0]), expected)
        << program::name(type);
  }
}

TEST(ChecksumTerm, ChangesWithEveryBitAndWithThePlace) {
  constexpr std::uint64_t one = 0x9abc, other = 0x1357;
  for (const std::uint64_t place : {0U, 3U, 7U, 16U, 23U}) {
    const std::uint64_t term = program::checksum_term(one, place);
    for (unsigned bit = 0; bit < 16; ++bit) {
      EXPECT_NE(program::checksum_term(one ^ (1U << bit), place), term) << place << ", " << bit;
    }
    EXPECT_NE(term + program::checksum_term(other, place + 1),
              program::checksum_term(other, place) + program::checksum_term(one, place + 1));
  }
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
    const std::vector<std::byte> ones(4 * program::element_size(type), std::byte{0xff});
    EXPECT_EQ(sums_of(type, ones, {.rows = 1, .columns = 4, .src = {.row_stride = 4}})[1],
              is_integer(type) ? 0 : 4)
        << program::name(type);
  }
}

TEST_P(Checksums, FlipTheBitsThatTheyAreToldToBeforeTheySumUp) {
  const Checksum shape{.rows = 3, .columns = 4, .src = {.row_stride = 6}};
  for (const DType type : all_types) {
    const std::size_t size = program::element_size(type);
    const std::vector<std::byte> raw = random_bytes(16 * size);
    std::vector<std::byte> expected = raw, left(raw.size());
    expected[8 * size + size - 1] ^= std::byte{64};  // row 1, column 2
    const auto session = summed(type, raw, shape, {6, std::int64_t{1} << (8 * size - 2)});
    session->read({.buffer = 0, .count = 16}, left);
    EXPECT_EQ(left, expected) << program::name(type);
    EXPECT_EQ(sums_in(*session), sums_of(type, expected, shape));
    put<std::int64_t>(*session, {.buffer = 2, .count = 2}, {6, 0});
    session->play({.section = program::Section::step});
    session->read({.buffer = 0, .count = 16}, left);
    EXPECT_EQ(left, expected) << program::name(type);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Checksums, each_backend(), name_of);

constexpr std::uint64_t count = 5'000;

class Fills : public EachExecutor {
 protected:
  /// A session that has filled the elements of a type, the first buffer.
  SessionPtr after(DType type, Fill fill, std::uint64_t elements = count) {
    Sketch sketch;
    fill.dst = sketch.buffer(type, elements);
    fill.shard = {.extents = {1, 1, elements}, .local = {0, 0, 1}, .global = {0, 0, 1}};
    sketch.emit(fill);
    return played(sketch);
  }
  void expect_filled(DType type, const Fill& fill, const std::vector<double>& values) {
    std::vector<std::byte> raw(count * program::element_size(type));
    after(type, fill)->read({.buffer = 0, .count = count}, raw);
    EXPECT_TRUE(raw == stored(type, values)) << program::name(type) << ", key " << fill.key;
  }
  std::vector<double> filled_f64(const Fill& fill, std::uint64_t elements = count) {
    return get<double>(*after(DType::f64, fill, elements), {.buffer = 0, .count = elements});
  }
};

TEST_P(Fills, OfEveryTypeHaveTheSameValues) {
  // 2^3: beyond what i8 and u8 hold, which wrap.
  for (const Fill& fill :
       {Fill{.key = 3}, Fill{.key = 4, .exponent = 3}, Fill{.key = 5, .range = 7, .one_in = 3},
        Fill{.source = FillSource::constant, .value = 5},
        Fill{.source = FillSource::constant, .value = -3}}) {
    const std::vector<double> values = filled_f64(fill);
    if (fill.source == FillSource::constant) {
      EXPECT_THAT(values, Each(fill.value));
    }
    for (const DType type : all_types) expect_filled(type, fill, values);
  }
}

TEST_P(Fills, DrawFromTheRangeAsOftenAsToldTo) {
  const Fill fill{.key = 11, .range = 2, .one_in = 8};
  const std::vector<double> values = filled_f64(fill);
  EXPECT_THAT(std::set<double>(values.begin(), values.end()), ElementsAre(-2, -1, 0, 1, 2));
  // One in 8 is drawn, of which one in 5 is 0: 500 of 5000, standard deviation 21.
  const std::int64_t zeros = std::ranges::count(values, 0.0);
  EXPECT_NEAR(static_cast<double>(count) - static_cast<double>(zeros), 500, 110);
  EXPECT_EQ(values, filled_f64(fill));
}

TEST_P(Fills, OfANormalHaveEveryDigitOfTheTypeAndItsExponents) {
  constexpr int exponent = 3;
  const Fill fill{.source = FillSource::normal, .key = 17, .exponent = exponent};
  const std::vector<double> values = filled_f64(fill);
  const auto share = [&](auto&& has) {
    return static_cast<double>(std::ranges::count_if(values, has)) / static_cast<double>(count);
  };
  // Probabilities of a normal; the standard deviation of a share is at most 0.007.
  for (const double bound : {0.125, 0.25, 0.5, 1.0, 2.0}) {
    EXPECT_NEAR(share([&](double x) { return std::abs(x) >= std::ldexp(bound, exponent); }),
                std::erfc(bound / std::numbers::sqrt2), 0.03)
        << bound;
  }
  EXPECT_NEAR(share([](double x) { return x > 0; }), 0.5, 0.03);
  // Each digit of the significand is set in half of them, in f64 and after rounding to others.
  for (int place = 2; place <= 53; ++place) {
    const auto has_digit = [&](double x) {
      int unused = 0;
      return static_cast<std::uint64_t>(std::ldexp(std::abs(std::frexp(x, &unused)), place)) % 2;
    };
    EXPECT_NEAR(share(has_digit), 0.5, 0.03) << place;
  }
  // The digits that f32 lacks are cut off before anything is rounded.
  std::vector<double> cut = values;
  for (double& value : cut) {
    value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) >> 29U << 29U);
  }
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    expect_filled(type, fill, cut);
  }
}

TEST_P(Fills, DrawFromTheWholeGridAndDependOnTheKey) {
  EXPECT_NE(filled_f64({.key = 42, .exponent = -3}), filled_f64({.key = 43, .exponent = -3}));
  constexpr std::uint64_t many = 100'000;
  std::set<double> seen;
  double sum = 0;
  for (const double filled : filled_f64({.key = 42, .exponent = -3}, many)) {
    const double value = 8 * filled;
    EXPECT_EQ(value, std::round(value));
    EXPECT_LE(std::abs(value), 127);
    seen.insert(value);
    sum += value;
  }
  EXPECT_EQ(seen.size(), 255U);
  // The standard deviation of one value is 73.6, that of the mean of 100,000 is 0.23.
  EXPECT_LT(std::abs(sum / many), 1.2);
}

TEST_P(Fills, OfAShardAreThePartOfTheWhole) {
  // A 4 x 6 tensor; its columns 2 to 4, transposed, in f32.
  Sketch sketch;
  const Slice whole = sketch.buffer<double>(24), part = sketch.buffer<float>(12);
  Fill fill{.dst = whole,
            .shard = {.extents = {1, 4, 6}, .local = {0, 6, 1}, .global = {0, 6, 1}},
            .key = 7,
            .exponent = 2};
  sketch.emit(fill);
  fill.dst = part;
  fill.shard = {.extents = {3, 4, 1}, .local = {4, 1, 0}, .global = {1, 6, 0}, .base = 2};
  sketch.emit(fill);
  const auto session = played(sketch);
  const auto all = get<double>(*session, whole);
  std::vector<float> expected;
  for (std::size_t i = 0; i < 12; ++i) {
    expected.push_back(static_cast<float>(all[i % 4 * 6 + i / 4 + 2]));
  }
  EXPECT_EQ(get<float>(*session, part), expected);
}

TEST_P(Fills, WithAConstantWriteItAndNothingElse) {
  // The middle columns of a 3 x 4 matrix.
  constexpr double third = 1.0 / 3;
  Sketch sketch;
  const Slice whole = sketch.buffer<double>(12);
  sketch.emit(Fill{.dst = {.buffer = whole.buffer, .offset = 1, .count = 10},
                   .shard = {.extents = {1, 3, 2}, .local = {0, 4, 1}, .global = {0, 2, 1}},
                   .source = FillSource::constant,
                   .key = 7,
                   .value = third});
  const auto session = played(sketch, with(whole, std::vector<double>(12, 9)));
  EXPECT_THAT(get<double>(*session, whole),
              ElementsAre(9, third, third, 9, 9, third, third, 9, 9, third, third, 9));
  expect_filled(DType::f32, {.source = FillSource::constant, .value = third},
                std::vector<double>(count, third));
}

/// Values written down once: they must not change, or runs of two versions do not compare.
TEST(FillValues, AreFixed) {
  std::vector<int> values;
  for (std::uint64_t i = 0; i < 6; ++i) {
    values.push_back(program::fill_integer({.origin = program::fill_origin(1)}, i));
  }
  EXPECT_EQ(program::power_of_two(-3), 0.125);
  EXPECT_EQ(program::power_of_two(4), 16);
  EXPECT_THAT(values, ElementsAre(93, -34, 113, -116, 71, -72));
}

INSTANTIATE_TEST_SUITE_P(Executors, Fills, each_backend(), name_of);

}  // namespace
}  // namespace isoscale::executor
