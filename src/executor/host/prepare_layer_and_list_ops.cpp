// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/prepare_ops.hpp"
#include "executor/op_requirements.hpp"
#include "program/operands.hpp"

namespace isoscale::executor::host {
namespace {

/// The matrices of one op, which all have the same extents; data is null where the op has no
/// buffer.
class Stored {
 public:
  template <class Op>
  Stored(const Resolver& resolver, const Op& op, const program::Slice& operand, const char* role)
      : resolver_(resolver), rows_(op.rows), columns_(op.columns) {
    static_cast<void>(resolver.element(operand, role));
    type_ = type_of(resolver, op);
    if constexpr (requires { op.batch; }) batch_ = op.batch;
  }

  [[nodiscard]] StoredMatrix operator()(const program::Matrix& matrix) const {
    if (!program::exists(matrix)) return {};
    return {.type = type_,
            .data = resolver_.address(matrix, rows_, columns_, batch_),
            .rows = rows_,
            .columns = columns_,
            .batch = batch_,
            .row_stride = matrix.row_stride,
            .batch_stride = matrix.batch_stride};
  }

 private:
  const Resolver& resolver_;
  std::size_t rows_, columns_, batch_ = 1;
  program::DType type_ = program::DType::f32;
};

std::int32_t* places_at(const Resolver& resolver, const program::Slice& places) {
  return reinterpret_cast<std::int32_t*>(resolver.address(places));
}

}  // namespace

Call prepare_op(const Resolver& resolver, const program::Norm& op) {
  const Stored stored{resolver, op, op.x.slice, "what is normed"};
  return NormCall{.x = stored(op.x),
                  .addend = stored(op.addend),
                  .sum = stored(op.sum),
                  .y = stored(op.y),
                  .inverse = resolver.address(op.inverse),
                  .epsilon = op.epsilon};
}

Call prepare_op(const Resolver& resolver, const program::NormGradient& op) {
  const Stored stored{resolver, op, op.s.slice, "what was normed"};
  return NormGradientCall{.dy = stored(op.dy),
                          .s = stored(op.s),
                          .addend = stored(op.addend),
                          .dx = stored(op.dx),
                          .inverse = resolver.address(op.inverse)};
}

Call prepare_op(const Resolver& resolver, const program::Activation& op) {
  const Stored stored{resolver, op, op.x.slice, "the operand of an activation"};
  return ActivationCall{.kind = op.kind, .x = stored(op.x), .up = stored(op.up), .y = stored(op.y)};
}

Call prepare_op(const Resolver& resolver, const program::ActivationGradient& op) {
  const Stored stored{resolver, op, op.x.slice, "the operand of an activation"};
  return ActivationGradientCall{.kind = op.kind,
                                .dy = stored(op.dy),
                                .x = stored(op.x),
                                .up = stored(op.up),
                                .dx = stored(op.dx),
                                .dup = stored(op.dup)};
}

Call prepare_op(const Resolver& resolver, const program::Softmax& op) {
  const Stored stored{resolver, op, op.x.slice, "the operand of a softmax"};
  return SoftmaxCall{.x = stored(op.x), .y = stored(op.y)};
}

Call prepare_op(const Resolver& resolver, const program::SoftmaxGradient& op) {
  const Stored stored{resolver, op, op.y.slice, "the result of a softmax"};
  return SoftmaxGradientCall{.y = stored(op.y), .dy = stored(op.dy), .dx = stored(op.dx)};
}

Call prepare_op(const Resolver& resolver, const program::Select& op) {
  static_cast<void>(resolver.element(op.src, "what is selected from"));
  const program::DType type = list_type(resolver, op);
  return SelectCall{.type = type,
                    .count = op.src.count,
                    .block = op.block,
                    .keep = op.keep,
                    .src = resolver.address(op.src),
                    .values = resolver.address(op.values),
                    .places = places_at(resolver, op.places)};
}

Call prepare_op(const Resolver& resolver, const program::Spread& op) {
  static_cast<void>(resolver.element(op.dst, "what lists are spread over"));
  const program::DType type = list_type(resolver, op);
  return SpreadCall{.type = type,
                    .count = op.dst.count,
                    .block = op.block,
                    .keep = op.keep,
                    .parts = op.parts,
                    .values = resolver.address(op.values),
                    .places = places_at(resolver, op.places),
                    .dst = resolver.address(op.dst)};
}

Call prepare_op(const Resolver& resolver, const program::Rows& op) {
  static_cast<void>(resolver.element(op.dst.slice, "the rows"));
  const program::DType type = list_type(resolver, op);
  return RowsCall{.type = type,
                  .columns = op.columns,
                  .each = op.each,
                  .scale = op.scale,
                  .src = resolver.address(op.src.slice),
                  .dst = resolver.address(op.dst, op.rows, op.columns, 1),
                  .src_row = op.src.row_stride,
                  .dst_row = op.dst.row_stride,
                  .from = op.from};
}

}  // namespace isoscale::executor::host
