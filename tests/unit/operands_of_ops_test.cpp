// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The operands that ops of each kind need: without a buffer for one of them an op is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "executor/host/player.hpp"
#include "executor/host/prepare.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::executor::host {
namespace {

using namespace program;  // NOLINT: the ops

Slice& slice_of(Slice& slice) { return slice; }
Slice& slice_of(Matrix& matrix) { return matrix.slice; }

/// Ops on matrices of 3 x 4 elements, which have a buffer for each of their operands.
class OperandsOfOps : public testing::Test {
 protected:
  static constexpr std::uint32_t rows = 3, columns = 4;

  Slice slice(std::uint64_t count, DType type = DType::f32) { return sketch_.buffer(type, count); }
  Matrix matrix() { return {.slice = slice(rows * columns), .row_stride = columns}; }

  /// Expects that the op can be played, but not without any one of these operands.
  template <class Op, class... Member>
  void expect_needed(const Op& op, Member Op::*... needed) {
    SCOPED_TRACE(name(kind_of(op)));
    EXPECT_NO_THROW(prepare(op));
    std::size_t number = 0;
    const auto expect_refused_without = [&](auto member) {
      Op without = op;
      slice_of(without.*member).buffer = no_buffer;
      EXPECT_THROW(prepare(without), base::Error) << "operand " << number;
      slice_of(without.*member) = {};
      EXPECT_THROW(prepare(without), base::Error) << "empty operand " << number;
      ++number;
    };
    (expect_refused_without(needed), ...);
  }

  void prepare(const Payload& op) {
    std::vector<std::byte> storage(1 << 16);
    ArenaPointers arenas{};
    arenas.fill(storage.data());
    const Resolver resolver{sketch_.program(), {}, 0, arenas};
    static_cast<void>(prepare_local(resolver, op));
  }

  Sketch sketch_;
};

TEST_F(OperandsOfOps, OfProductsCopiesSumsAndCasts) {
  const Gemm gemm{.m = rows,
                  .n = columns,
                  .k = 2,
                  .a = {.slice = slice(6), .row_stride = 2},
                  .b = {.slice = slice(8), .row_stride = columns},
                  .d = matrix()};
  expect_needed(gemm, &Gemm::a, &Gemm::b, &Gemm::d);
  Gemm adding = gemm;
  adding.beta = 1;
  adding.c = matrix();
  expect_needed(adding, &Gemm::c);
  expect_needed(Copy{.rows = rows, .columns = columns, .src = matrix(), .dst = matrix()},
                &Copy::src, &Copy::dst);
  expect_needed(
      Add{.rows = rows, .columns = columns, .a = matrix(), .b = matrix(), .dst = matrix()}, &Add::a,
      &Add::b, &Add::dst);
  expect_needed(Cast{.rows = rows, .columns = columns, .src = matrix(), .dst = matrix()},
                &Cast::src, &Cast::dst);
  expect_needed(Advise{.slice = slice(8)}, &Advise::slice);
}

TEST_F(OperandsOfOps, OfFillsUpdatesAndChecksums) {
  expect_needed(
      Fill{.dst = slice(8),
           .shard = {.extents = {1, 1, 8}, .local = {0, 0, 1}, .global = {0, 0, 1}, .base = 0}},
      &Fill::dst);
  const Update sgd{.weight = slice(8), .gradient = slice(8)};
  expect_needed(sgd, &Update::weight, &Update::gradient);
  Update adam = sgd;
  adam.optimizer = Optimizer::adam;
  adam.moment1 = slice(8);
  adam.moment2 = slice(8);
  adam.powers = slice(2);
  expect_needed(adam, &Update::weight, &Update::gradient, &Update::moment1, &Update::moment2,
                &Update::powers);
  Checksum checksum{.rows = rows, .columns = columns, .src = matrix(), .sum = slice(2, DType::i64)};
  expect_needed(checksum, &Checksum::src, &Checksum::sum);
  checksum.flip = slice(2, DType::i64);
  expect_needed(checksum, &Checksum::src, &Checksum::sum);
}

TEST_F(OperandsOfOps, OfNormsActivationsAndSoftmax) {
  const Norm norm{
      .rows = rows, .columns = columns, .x = matrix(), .y = matrix(), .inverse = slice(rows)};
  expect_needed(norm, &Norm::x, &Norm::y, &Norm::inverse);
  Norm adding = norm;
  adding.addend = matrix();
  adding.sum = matrix();
  expect_needed(adding, &Norm::x, &Norm::addend, &Norm::sum, &Norm::y, &Norm::inverse);
  expect_needed(NormGradient{.rows = rows,
                             .columns = columns,
                             .dy = matrix(),
                             .s = matrix(),
                             .dx = matrix(),
                             .inverse = slice(rows)},
                &NormGradient::dy, &NormGradient::s, &NormGradient::dx, &NormGradient::inverse);
  Activation activation{.rows = rows, .columns = columns, .x = matrix(), .y = matrix()};
  expect_needed(activation, &Activation::x, &Activation::y);
  activation.kind = ActivationKind::swiglu;
  activation.up = matrix();
  expect_needed(activation, &Activation::x, &Activation::up, &Activation::y);
  using Gradient = ActivationGradient;
  Gradient gradient{
      .rows = rows, .columns = columns, .dy = matrix(), .x = matrix(), .dx = matrix()};
  expect_needed(gradient, &Gradient::dy, &Gradient::x, &Gradient::dx);
  gradient.kind = ActivationKind::swiglu;
  gradient.up = matrix();
  gradient.dup = matrix();
  expect_needed(gradient, &Gradient::dy, &Gradient::x, &Gradient::up, &Gradient::dx,
                &Gradient::dup);
  expect_needed(Softmax{.rows = rows, .columns = columns, .x = matrix(), .y = matrix()},
                &Softmax::x, &Softmax::y);
  expect_needed(
      SoftmaxGradient{
          .rows = rows, .columns = columns, .y = matrix(), .dy = matrix(), .dx = matrix()},
      &SoftmaxGradient::y, &SoftmaxGradient::dy, &SoftmaxGradient::dx);
}

TEST_F(OperandsOfOps, OfListsAndRows) {
  expect_needed(Select{.block = 8,
                       .keep = 2,
                       .src = slice(16),
                       .values = slice(4),
                       .places = slice(4, DType::i32)},
                &Select::src, &Select::values, &Select::places);
  expect_needed(Spread{.block = 8,
                       .keep = 2,
                       .values = slice(4),
                       .places = slice(4, DType::i32),
                       .dst = slice(16)},
                &Spread::values, &Spread::places, &Spread::dst);
  expect_needed(
      Rows{.rows = rows, .columns = columns, .src = matrix(), .dst = matrix(), .from = {2, 0, 1}},
      &Rows::src, &Rows::dst);
}

TEST_F(OperandsOfOps, RowsGoToAMatrixThatHasRoomForThem) {
  Rows op{.rows = rows, .columns = columns, .src = matrix(), .dst = matrix(), .from = {2, 0, 1}};
  EXPECT_FALSE(mistake(op));
  op.dst.row_stride = 0;  // room for one row
  EXPECT_TRUE(mistake(op));
  op.dst.row_stride = columns + 1;
  EXPECT_TRUE(mistake(op));
  op.dst = {};
  EXPECT_TRUE(mistake(op));
}

}  // namespace
}  // namespace isoscale::executor::host
