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

  Builder builder_{mesh::Shape{}};
};

constexpr std::uint64_t elements = std::uint64_t{rows} * columns;

TEST_F(OpBytes, AreThoseOfEachOperandOnce) {
  struct Case {
    const char* what;
    Payload op;
    std::uint64_t bytes;
  };
  const auto m = [&](DType type = DType::f32) { return strided(type); };
  const Matrix in_place = m(), wide_in_place = m(DType::f64);
  const Slice inverse = slice(rows);
  const std::vector<Case> cases{
      {"norm: its rows and one inverse each",
       Norm{.rows = rows, .columns = columns, .x = m(), .y = m(), .inverse = inverse},
       (2 * elements + rows) * 4},
      {"norm that adds",
       Norm{.rows = rows,
            .columns = columns,
            .x = m(),
            .addend = m(),
            .sum = m(),
            .y = m(),
            .inverse = inverse},
       (4 * elements + rows) * 4},
      {"gradient of a norm, in place",
       NormGradient{.rows = rows,
                    .columns = columns,
                    .dy = in_place,
                    .s = m(),
                    .addend = m(),
                    .dx = in_place,
                    .inverse = inverse},
       (4 * elements + rows) * 4},
      {"moved rows: those named and those written",
       Rows{.rows = 2,
            .columns = columns,
            .each = 2,
            .src = m(),
            .dst = m(),
            .from = {5, 1, 5, Rows::no_row}},
       (3 + 2) * columns * 4},
      {"activation, by its type",
       Activation{.kind = ActivationKind::gelu,
                  .rows = rows,
                  .columns = columns,
                  .x = m(DType::bf16),
                  .y = m(DType::bf16)},
       2 * elements * 2},
      {"gradient of a gated activation",
       ActivationGradient{.kind = ActivationKind::swiglu,
                          .rows = rows,
                          .columns = columns,
                          .dy = m(),
                          .x = m(),
                          .up = m(),
                          .dx = m(),
                          .dup = m()},
       5 * elements * 4},
      {"softmax: all rows of the batch",
       Softmax{.rows = rows,
               .columns = columns,
               .batch = batch,
               .x = wide_in_place,
               .y = wide_in_place},
       2 * batch * elements * 8},
      {"gradient of a softmax, in place",
       SoftmaxGradient{.rows = rows,
                       .columns = columns,
                       .batch = batch,
                       .y = m(),
                       .dy = in_place,
                       .dx = in_place},
       3 * batch * elements * 4},
      {"addition, without what lies between rows",
       Add{.rows = rows, .columns = columns, .a = m(), .b = m(), .dst = m()}, 3 * elements * 4},
      {"one matrix copied to a whole batch",
       Copy{.rows = rows,
            .columns = columns,
            .batch = batch,
            .src = {.slice = slice(rows * stride), .row_stride = stride},
            .dst = m()},
       (1 + batch) * elements * 4},
      {"cast with both copies",
       Cast{.rows = rows,
            .columns = columns,
            .src = m(DType::bf16),
            .dst = {.slice = slice(elements, DType::e4m3), .row_stride = columns},
            .transposed = {.slice = slice(elements, DType::e4m3), .row_stride = rows}},
       (2 + 1 + 1) * elements}};
  for (const Case& one : cases) builder_.emit(0, one.op);
  const auto ops = outline(builder_.finish(), Section::step, {}).ops;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const OutlineOp& op = ops.at(ops.size() - cases.size() + i);
    EXPECT_EQ(op.bytes, cases[i].bytes) << cases[i].what;
    EXPECT_EQ(op.flop, 0) << cases[i].what;
  }
}

TEST_F(OpBytes, AreNotAskedOfOpsThatAreIllFormed) {
  const Matrix x = strided();
  Matrix small = x;
  small.slice.count = rows * stride - 7;  // one short of the last row's end
  const Slice inverse = slice(rows);
  const Slice few{.buffer = inverse.buffer, .offset = 0, .count = rows - 1};
  const auto why = [](const Payload& op) { return mistake(op).value_or("none"); };
  const Softmax short_of_one{.rows = rows, .columns = columns, .x = x, .y = small};
  EXPECT_EQ(why(Softmax{.rows = rows, .columns = columns, .x = x, .y = x}), "none");
  EXPECT_THAT(why(short_of_one), HasSubstr("needs 90"));
  EXPECT_THROW(builder_.emit(0, short_of_one), base::Error);
  Norm norm{.rows = rows, .columns = columns, .x = x, .y = x};
  EXPECT_THAT(why(norm), HasSubstr("0 inverses"));
  norm.inverse = few;
  EXPECT_THAT(why(norm), HasSubstr("5 inverses"));
  norm.inverse = inverse;
  norm.addend = x;
  EXPECT_THAT(why(norm), HasSubstr("neither"));
  Activation activation{
      .kind = ActivationKind::swiglu, .rows = rows, .columns = columns, .x = x, .y = x};
  EXPECT_THAT(why(activation), HasSubstr("swiglu"));
  activation.kind = ActivationKind::gelu;
  activation.up = x;
  EXPECT_THAT(why(activation), HasSubstr("gelu"));
  EXPECT_THAT(why(ActivationGradient{.kind = ActivationKind::swiglu,
                                     .rows = rows,
                                     .columns = columns,
                                     .dy = x,
                                     .x = x,
                                     .up = x,
                                     .dx = x}),
              HasSubstr("neither"));
}

/// Returns what one rank sends in a collective over `members`, of buffers with so many f32
/// elements.
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
  // A rank sends nothing to itself.
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
