// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The bytes of an op are those that it reads and writes, each operand once; ops that are not well
// formed are refused.

#include "base/error.hpp"
#include "matchers.hpp"
#include "program/builder.hpp"
#include "program/operands.hpp"
#include "program/outline.hpp"

namespace isoscale::program {
namespace {

constexpr std::uint32_t rows = 6, columns = 10, batch = 3;
constexpr std::uint64_t stride = 16;

/// Buffers that have all been written.
class OpBytes : public testing::Test {
 protected:
  OpBytes() { builder_.begin(Section::step); }

  Slice slice(std::uint64_t count, DType type = DType::f32) {
    const BufferId id = builder_.allocate({.dtype = type, .count = count});
    builder_.emit(0, Fill{.dst = builder_.whole(id), .source = FillSource::constant});
    return builder_.whole(id);
  }
  Matrix strided(DType type = DType::f32) {
    return {.slice = slice(batch * rows * stride, type),
            .row_stride = stride,
            .batch_stride = rows * stride};
  }

  Builder builder_{mesh::Shape{}};
};

constexpr std::uint64_t elements = std::uint64_t{rows} * columns;

TEST_F(OpBytes, AreThoseOfEachOperandOnce) {
  const auto m = [&](DType type = DType::f32) { return strided(type); };
  Norm norm{.rows = rows, .columns = columns, .x = m(), .addend = m(), .sum = m(), .y = m()};
  norm.inverse = slice(rows);
  Rows moved{.rows = 2, .columns = columns, .each = 2, .src = m(), .dst = m()};
  moved.from = {5, 1, 5, Rows::no_row};
  Activation gelu{.kind = ActivationKind::gelu, .rows = rows, .columns = columns};
  gelu.x = m(DType::bf16);
  gelu.y = m(DType::bf16);
  const Add add{.rows = rows, .columns = columns, .a = m(), .b = m(), .dst = m()};
  Copy to_batch{.rows = rows, .columns = columns, .batch = batch, .dst = m()};
  to_batch.src = {.slice = slice(rows * stride), .row_stride = stride};
  Cast cast{.rows = rows, .columns = columns, .src = m(DType::bf16)};
  cast.dst = {.slice = slice(elements, DType::e4m3), .row_stride = columns};
  cast.transposed = {.slice = slice(elements, DType::e4m3), .row_stride = rows};
  const std::vector<std::tuple<const char*, Payload, std::uint64_t>> cases{
      {"norm that adds", norm, (4 * elements + rows) * 4},
      {"moved rows: those named and those written", moved, (3 + 2) * columns * 4},
      {"activation, by its type", gelu, 2 * elements * 2},
      {"addition, without what lies between rows", add, 3 * elements * 4},
      {"one matrix copied to a whole batch", to_batch, (1 + batch) * elements * 4},
      {"cast with both copies", cast, (2 + 1 + 1) * elements}};
  for (const auto& [what, op, bytes] : cases) builder_.emit(0, op);
  const auto ops = outline(builder_.finish(), Section::step, {}).ops;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [what, payload, bytes] = cases[i];
    const OutlineOp& op = ops.at(ops.size() - cases.size() + i);
    EXPECT_EQ(op.bytes, bytes) << what;
    EXPECT_EQ(op.flop, 0) << what;
  }
}

TEST_F(OpBytes, AreNotAskedOfOpsThatAreIllFormed) {
  const Matrix x = strided();
  Matrix small = x;
  small.slice.count = rows * stride - 7;  // one short of the last row's end
  const Slice inverse = slice(rows);
  const Slice few{.buffer = inverse.buffer, .offset = 0, .count = rows - 1};
  const Softmax short_of_one{.rows = rows, .columns = columns, .x = x, .y = small};
  const Norm norm{.rows = rows, .columns = columns, .x = x, .y = x};
  Activation gelu{.kind = ActivationKind::gelu, .rows = rows, .columns = columns};
  gelu.x = gelu.y = x;
  const auto with = [](auto op, auto member, const auto& value) {
    op.*member = value;
    return op;
  };
  Norm added = with(norm, &Norm::inverse, inverse);
  added.addend = x;
  ActivationGradient halved{.kind = ActivationKind::swiglu, .rows = rows, .columns = columns};
  halved.dy = halved.x = halved.up = halved.dx = x;
  // Two of each four elements are kept.
  const Slice eight = slice(8), four = slice(4);
  const Select select{.block = 4, .keep = 2, .src = eight, .values = four, .places = four};
  const Spread spread{.block = 4, .keep = 2, .values = four, .places = four, .dst = eight};
  const auto pair_of_rows = [&](std::uint64_t from_row_to_row) {
    return Matrix{.slice = eight, .row_stride = from_row_to_row};
  };
  Rows moved{.rows = 2, .columns = 4, .src = pair_of_rows(4), .dst = pair_of_rows(4)};
  moved.from = {1, Rows::no_row};
  using Indices = std::vector<std::uint32_t>;
  const std::vector<std::pair<Payload, const char*>> cases{
      {Softmax{.rows = rows, .columns = columns, .x = x, .y = x}, "none"},
      {short_of_one, "needs 90"},
      {norm, "0 inverses"},
      {with(norm, &Norm::inverse, few), "5 inverses"},
      {added, "neither"},
      {with(gelu, &Activation::kind, ActivationKind::swiglu), "swiglu"},
      {with(gelu, &Activation::up, x), "gelu"},
      {halved, "neither"},
      {select, "none"},
      {with(select, &Select::keep, 0U), "0 of each 4"},
      {with(select, &Select::keep, 5U), "5 of each 4"},
      {with(select, &Select::block, 3U), "have 6 entries"},
      {with(select, &Select::values, eight), "8 values"},
      {spread, "none"},
      {with(spread, &Spread::parts, 0U), "no list"},
      {moved, "none"},
      {with(moved, &Rows::from, Indices{0}), "not 1"},
      {with(moved, &Rows::from, Indices{0, 2}), "row 2"},
      {with(moved, &Rows::each, 0U), "sums of none"},
      {with(with(moved, &Rows::rows, 3U), &Rows::from, Indices{0, 1, 0}), "needs 12"},
      {with(moved, &Rows::dst, pair_of_rows(0)), "do not fit"},
      {with(moved, &Rows::dst, pair_of_rows(5)), "needs 9"},
      {with(moved, &Rows::dst, Matrix{}), "do not fit"}};
  for (const auto& [op, why] : cases) EXPECT_THAT(mistake(op).value_or("none"), HasSubstr(why));
  EXPECT_THROW(builder_.emit(0, short_of_one), base::Error);
}

}  // namespace
}  // namespace isoscale::program
