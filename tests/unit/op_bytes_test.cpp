// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The bytes that ops read, write and send, each operand once, and the ops that are not well formed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "program/builder.hpp"
#include "program/facts.hpp"
#include "program/operands.hpp"
#include "program/outline.hpp"

namespace isoscale::program {
namespace {

using mesh::Axis;
using testing::HasSubstr;

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
  OutlineOp outlined(Payload payload) {
    builder_.emit(0, std::move(payload));
    return outline(builder_.finish(), Section::step, {}).ops.back();
  }

  Builder builder_{mesh::Shape{}};
};

constexpr std::uint64_t elements = std::uint64_t{rows} * columns;

TEST_F(OpBytes, OfANormAreItsRowsAndOneInverseEach) {
  const Norm op{
      .rows = rows, .columns = columns, .x = strided(), .y = strided(), .inverse = slice(rows)};
  const OutlineOp result = outlined(op);
  EXPECT_EQ(result.bytes, (2 * elements + rows) * 4);
  EXPECT_EQ(result.flop, 0);
}

TEST_F(OpBytes, OfMovedRowsAreThoseNamedAndThoseWritten) {
  const Rows op{.rows = 2,
                .columns = columns,
                .each = 2,
                .src = strided(),
                .dst = strided(),
                .from = {5, 1, 5, Rows::no_row}};
  EXPECT_EQ(outlined(op).bytes, (3 + 2) * columns * 4);
}

TEST_F(OpBytes, OfANormThatAddsAreFourMatrices) {
  Norm op{.rows = rows, .columns = columns, .x = strided(), .y = strided(), .inverse = slice(rows)};
  op.addend = strided();
  op.sum = strided();
  EXPECT_EQ(outlined(op).bytes, (4 * elements + rows) * 4);
}

TEST_F(OpBytes, OfANormsGradientAreThreeOrFourMatrices) {
  NormGradient op{.rows = rows, .columns = columns, .dy = strided(), .s = strided()};
  op.dx = op.dy;  // in place: read and written
  op.inverse = slice(rows);
  op.addend = strided();
  EXPECT_EQ(outlined(op).bytes, (4 * elements + rows) * 4);
}

TEST_F(OpBytes, OfActivationsGoByTheirType) {
  const Activation gelu{.kind = ActivationKind::gelu,
                        .rows = rows,
                        .columns = columns,
                        .x = strided(DType::bf16),
                        .y = strided(DType::bf16)};
  EXPECT_EQ(outlined(gelu).bytes, 2 * elements * 2);
}

TEST_F(OpBytes, OfAGatedActivationsGradientAreFiveMatrices) {
  const ActivationGradient op{.kind = ActivationKind::swiglu,
                              .rows = rows,
                              .columns = columns,
                              .dy = strided(),
                              .x = strided(),
                              .up = strided(),
                              .dx = strided(),
                              .dup = strided()};
  const OutlineOp result = outlined(op);
  EXPECT_EQ(result.bytes, 5 * elements * 4);
  EXPECT_EQ(result.flop, 0);
}

TEST_F(OpBytes, OfASoftmaxAreAllRowsOfTheBatch) {
  const Matrix x = strided(DType::f64);
  const OutlineOp result =
      outlined(Softmax{.rows = rows, .columns = columns, .batch = batch, .x = x, .y = x});
  EXPECT_EQ(result.bytes, 2 * batch * elements * 8);
  EXPECT_EQ(result.flop, 0);
}

TEST_F(OpBytes, OfASoftmaxGradientAreThreeMatrices) {
  const Matrix dy = strided();
  const SoftmaxGradient op{
      .rows = rows, .columns = columns, .batch = batch, .y = strided(), .dy = dy, .dx = dy};
  EXPECT_EQ(outlined(op).bytes, 3 * batch * elements * 4);
}

TEST_F(OpBytes, LeaveOutWhatLiesBetweenRows) {
  const Add add{.rows = rows, .columns = columns, .a = strided(), .b = strided(), .dst = strided()};
  EXPECT_EQ(outlined(add).bytes, 3 * elements * 4);
}

TEST_F(OpBytes, OfAMatrixCopiedToAWholeBatchCountItOnce) {
  const Copy copy{.rows = rows,
                  .columns = columns,
                  .batch = batch,
                  .src = {.slice = slice(rows * stride), .row_stride = stride},
                  .dst = strided()};
  EXPECT_EQ(outlined(copy).bytes, (1 + batch) * elements * 4);
}

TEST_F(OpBytes, OfACastAreThoseOfBothCopies) {
  const Cast cast{.rows = rows,
                  .columns = columns,
                  .src = strided(DType::bf16),
                  .dst = {.slice = slice(elements, DType::e4m3), .row_stride = columns},
                  .transposed = {.slice = slice(elements, DType::e4m3), .row_stride = rows}};
  EXPECT_EQ(outlined(cast).bytes, (2 + 1 + 1) * elements);
}

void expect_mistake(const Payload& payload, const char* what) {
  const auto found = mistake(payload);
  ASSERT_TRUE(found.has_value()) << what;
  EXPECT_THAT(*found, HasSubstr(what));
}

TEST_F(OpBytes, AreNotAskedOfOpsThatAreIllFormed) {
  const Matrix x = strided();
  Matrix small = x;
  small.slice.count = rows * stride - 7;  // one short of the last row's end
  const Slice inverse = slice(rows);
  const Softmax fits{.rows = rows, .columns = columns, .x = x, .y = x};
  EXPECT_FALSE(mistake(fits));
  expect_mistake(Softmax{.rows = rows, .columns = columns, .x = x, .y = small}, "needs 90");
  expect_mistake(Norm{.rows = rows, .columns = columns, .x = x, .y = x}, "0 inverses");
  Slice few = inverse;
  few.count = rows - 1;
  expect_mistake(Norm{.rows = rows, .columns = columns, .x = x, .y = x, .inverse = few},
                 "5 inverses");
  expect_mistake(
      Norm{.rows = rows, .columns = columns, .x = x, .addend = x, .y = x, .inverse = inverse},
      "neither");
  expect_mistake(
      Activation{.kind = ActivationKind::swiglu, .rows = rows, .columns = columns, .x = x, .y = x},
      "swiglu");
  expect_mistake(
      Activation{
          .kind = ActivationKind::gelu, .rows = rows, .columns = columns, .x = x, .up = x, .y = x},
      "gelu");
  expect_mistake(ActivationGradient{.kind = ActivationKind::swiglu,
                                    .rows = rows,
                                    .columns = columns,
                                    .dy = x,
                                    .x = x,
                                    .up = x,
                                    .dx = x},
                 "neither");
  EXPECT_THROW(builder_.emit(0, Softmax{.rows = rows, .columns = columns, .x = x, .y = small}),
               base::Error);
}

/// What one rank sends in a collective over `members`, of buffers with so many f32 elements.
std::uint64_t sent(CollectiveKind kind, int members, std::uint64_t send, std::uint64_t receive) {
  const mesh::Shape mesh{.dp = members};
  Builder builder{mesh};
  builder.begin(Section::step);
  const auto buffer = [&](std::uint64_t count) {
    const BufferId id = builder.allocate({.count = count});
    builder.emit(0, Fill{.dst = builder.whole(id), .source = FillSource::constant});
    return builder.whole(id);
  };
  const Slice from = buffer(send), to = buffer(receive);
  builder.emit(0, Collective{.kind = kind, .axes = Axis::dp, .send = from, .receive = to});
  return facts(builder.finish(), mesh).traffic.at(0).sent.value();
}

TEST(Sent, IsThatOfRings) {
  // Four ranks, 1000 elements of 4 bytes in the larger buffer.
  EXPECT_EQ(sent(CollectiveKind::all_reduce, 4, 1000, 1000), 6000U);
  EXPECT_EQ(sent(CollectiveKind::reduce_scatter, 4, 1000, 250), 3000U);
  EXPECT_EQ(sent(CollectiveKind::all_gather, 4, 250, 1000), 3000U);
  EXPECT_EQ(sent(CollectiveKind::all_to_all, 4, 1000, 1000), 3000U);
  EXPECT_EQ(sent(CollectiveKind::broadcast, 4, 1000, 1000), 3000U);
  EXPECT_EQ(sent(CollectiveKind::reduce, 4, 1000, 1000), 3000U);
  EXPECT_EQ(sent(CollectiveKind::gather, 4, 250, 1000), 750U);
  EXPECT_EQ(sent(CollectiveKind::scatter, 4, 1000, 250), 750U);
}

TEST(Sent, IsNothingToOneself) {
  EXPECT_EQ(sent(CollectiveKind::all_reduce, 1, 1000, 1000), 0U);
  EXPECT_EQ(sent(CollectiveKind::all_gather, 1, 1000, 1000), 0U);
}

TEST(Sent, OfAnExchangeIsTheSumOfItsSends) {
  const mesh::Shape mesh{.pp = 4};
  Builder builder{mesh};
  builder.begin(Section::step);
  const BufferId id = builder.allocate({.count = 60});
  builder.emit(0, Fill{.dst = builder.whole(id), .source = FillSource::constant});
  const auto part = [&](std::uint64_t offset, std::uint64_t count) {
    return Slice{.buffer = id, .offset = offset, .count = count};
  };
  builder.emit(0, Exchange{{{Direction::send, Axis::pp, 1, part(0, 10)},
                            {Direction::send, Axis::pp, -1, part(10, 20)},
                            {Direction::receive, Axis::pp, 1, part(30, 25)}}});
  const Facts result = facts(builder.finish(), mesh);
  EXPECT_EQ(result.traffic.at(0).sent.value(), 30U * 4);
  EXPECT_EQ(result.traffic.at(0).bytes.value(), 30U * 4);
}

}  // namespace
}  // namespace isoscale::program
