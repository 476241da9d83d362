// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/linear.hpp"

#include <algorithm>

#include "program/low_precision.hpp"

namespace isoscale::workloads::stack {

namespace {

/// Returns the rows `rows` of `whole`, an activation with `columns` columns that has these rows.
Operand part_of(const Operand& whole, const RowRange& rows, std::uint64_t columns) {
  Operand part = whole;
  part.rows = rows;
  const std::uint64_t skipped = rows.first - whole.rows.first;
  if (whole.plain.slice.buffer != no_buffer) {
    part.plain = rows_of(whole.plain, skipped, rows.count, columns);
  }
  if (whole.transposed.slice.buffer != no_buffer) {
    Slice& slice = part.transposed.slice;
    slice.offset += skipped;
    slice.count = (columns - 1) * whole.transposed.row_stride + rows.count;
  }
  return part;
}

/// Returns some rows of an activation that is given in blocks, from the block that has them.
Operand part_of(const std::vector<Operand>& blocks, const RowRange& rows, std::uint64_t columns) {
  const auto has_first = [&](const Operand& block) {
    return block.rows.first <= rows.first && rows.first < block.rows.first + block.rows.count;
  };
  return part_of(*std::ranges::find_if(blocks, has_first), rows, columns);
}

}  // namespace

Operand LinearWriter::cast(const Operand& src, std::uint64_t columns, const Destination& to) {
  const std::uint64_t rows = src.rows.count;
  const auto allocate = [&](DType type, Role role, std::uint64_t count) {
    const program::Buffer buffer{.dtype = type,
                                 .role = role,
                                 .microbatch = role == Role::activation ? to.microbatch : -1,
                                 .count = count};
    // Copies of weights that stay on the device are checked, like the weights, after the last step.
    return role == Role::weight ? builder_.allocate(buffer) : builder_.temporary(buffer);
  };
  Operand result{.rows = src.rows};
  if (to.plain) {
    const BufferId plain = allocate(to.type, *to.plain, rows * columns);
    result.plain = dense(plain, rows, columns);
  }
  if (to.transposed) {
    const BufferId transposed = allocate(to.type, *to.transposed, rows * columns);
    result.transposed = dense(transposed, columns, rows);
  }
  result.descale = allocate(DType::f32, to.transposed ? *to.transposed : *to.plain, 1);
  const program::NarrowFormat format = *program::narrow_format(to.type);
  builder_.emit(0, program::Cast{.rows = extent(rows),
                                 .columns = extent(columns),
                                 .src = src.plain,
                                 .dst = result.plain,
                                 .transposed = result.transposed,
                                 .scaling = program::CastScale::amax,
                                 .target = program::decode(format, format.largest),
                                 .descale = result.descale});
  return result;
}

Operand LinearWriter::weight(const Linear& linear, Copy copy) {
  const Operand stored{.plain = dense(linear.weight, linear.inputs, linear.outputs),
                       .rows = {.count = linear.inputs}};
  if (!linear.weight_stays) {
    if (moving_weight_.multiplied == 0) {
      Destination to{.type = types_.operand, .plain = {}, .transposed = {}};
      (copy == Copy::plain ? to.plain : to.transposed) = Role::workspace;
      moving_weight_.operand = cast(stored, linear.outputs, to);
    }
    return moving_weight_.operand;
  }
  const auto known = weights_.find(linear.place);
  if (known != weights_.end()) return known->second;
  // The weight is cast once for all microbatches: in the first forward pass of a step, before its
  // GEMM.
  const Place place = builder_.place();
  builder_.at({.phase = place.phase, .layer = place.layer, .microbatch = -1});
  const Operand operand =
      cast(stored, linear.outputs,
           {.type = types_.operand, .plain = Role::weight, .transposed = Role::weight});
  builder_.at(place);
  weights_[linear.place] = operand;
  return operand;
}

void LinearWriter::used_weight(const Linear& linear, std::uint64_t rows) {
  if (linear.weight_stays) return;
  moving_weight_.multiplied += rows;
  if (moving_weight_.multiplied >= g_.tokens) moving_weight_ = {};
}

Gemm LinearWriter::forward_product(const Linear& linear, std::uint64_t rows, const Matrix& x,
                                   const Matrix& y, const Addend& addend) const {
  return {.m = extent(rows),
          .n = extent(linear.outputs),
          .k = extent(linear.inputs),
          .mode = types_.mode,
          .accumulation = types_.forward,
          .alpha = linear.gain,
          .beta = addend.beta,
          .a = x,
          .b = dense(linear.weight, linear.inputs, linear.outputs),
          .c = addend.c,
          .d = y};
}

void LinearWriter::forward(const Linear& linear, int microbatch, const Operand& x,
                           const RowRange& rows, const Matrix& y, const Addend& addend,
                           InputCopy input_copy) {
  Gemm gemm = forward_product(linear, rows.count, part_of(x, rows, linear.inputs).plain, y, addend);
  if (linear.operands == Operands::stored) return builder_.emit(0, gemm);
  const Operand w = weight(linear, Copy::transposed);
  if (input_.multiplied == 0) {
    Destination to{.type = types_.operand,
                   .plain = Role::workspace,
                   .transposed = Role::activation,
                   .microbatch = microbatch};
    if (input_copy == InputCopy::dropped) to.transposed.reset();
    input_.operand = cast(x, linear.inputs, to);
  }
  gemm.a = part_of(input_.operand, rows, linear.inputs).plain;
  gemm.b = w.transposed;
  gemm.transpose_b = Transpose::yes;
  gemm.descale_a = input_.operand.descale;
  gemm.descale_b = w.descale;
  builder_.emit(0, gemm);
  used_weight(linear, rows.count);
  input_.multiplied += rows.count;
  if (input_.multiplied < x.rows.count) return;
  if (input_copy == InputCopy::kept) {
    inputs_[{linear.place, microbatch}].push_back(input_.operand);
  }
  input_ = {};
}

void LinearWriter::keep_input(const Linear& linear, int microbatch, const Operand& x) {
  if (linear.operands == Operands::stored) return;
  inputs_[{linear.place, microbatch}] = {cast(x, linear.inputs,
                                              {.type = types_.operand,
                                               .plain = {},
                                               .transposed = Role::activation,
                                               .microbatch = microbatch})};
}

Operand LinearWriter::gradient(const Linear& linear, const Operand& dy) {
  if (linear.operands == Operands::stored) return dy;
  return cast(
      dy, linear.outputs,
      {.type = types_.gradient_operand, .plain = Role::workspace, .transposed = Role::workspace});
}

void LinearWriter::input_gradient(const Linear& linear, const Operand& dy, const RowRange& rows,
                                  const Matrix& dx, const Addend& addend) {
  const Matrix dy_rows = part_of(dy, rows, linear.outputs).plain;
  Gemm gemm = forward_product(linear, rows.count, dy_rows, dx, addend);
  std::swap(gemm.n, gemm.k);
  gemm.transpose_b = Transpose::yes;
  gemm.accumulation = types_.backward;
  if (linear.operands == Operands::stored) return builder_.emit(0, gemm);
  const Operand w = weight(linear, Copy::plain);
  gemm.b = w.plain;
  gemm.descale_a = dy.descale;
  gemm.descale_b = w.descale;
  builder_.emit(0, gemm);
  used_weight(linear, rows.count);
}

void LinearWriter::weight_gradient(const Linear& linear, int microbatch,
                                   const std::vector<Operand>& x, const std::vector<Operand>& dy) {
  const bool is_cast = linear.operands == Operands::cast;
  const std::vector<Operand> inputs =
      is_cast ? inputs_.extract({linear.place, microbatch}).mapped() : x;
  const Matrix gradient = dense(linear.gradient, linear.inputs, linear.outputs);
  double beta = linear.gradient_beta;
  for (const Operand& block : inputs.size() > dy.size() ? inputs : dy) {
    const Operand a = part_of(inputs, block.rows, linear.inputs);
    const Operand b = part_of(dy, block.rows, linear.outputs);
    builder_.emit(0, Gemm{.m = extent(linear.inputs),
                          .n = extent(linear.outputs),
                          .k = extent(block.rows.count),
                          .transpose_a = is_cast ? Transpose::no : Transpose::yes,
                          .transpose_b = is_cast ? Transpose::yes : Transpose::no,
                          .mode = types_.mode,
                          .accumulation = types_.backward,
                          .alpha = linear.gain,
                          .beta = beta,
                          .a = is_cast ? a.transposed : a.plain,
                          .b = is_cast ? b.transposed : b.plain,
                          .c = gradient,
                          .d = gradient,
                          .descale_a = a.descale,
                          .descale_b = b.descale});
    beta = 1;
  }
}

}  // namespace isoscale::workloads::stack
