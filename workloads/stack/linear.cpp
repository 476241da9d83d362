// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/linear.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "base/error.hpp"
#include "program/low_precision.hpp"

namespace isoscale::workloads::stack {

void require_fp8_extents(const Geometry& g) {
  const auto require = [&](std::uint64_t number, std::string_view what, std::string_view fix) {
    if (number % fp8_multiple == 0) return;
    throw usage_error(
        "--dtype fp8: {} = {} is not a multiple of {}, as fp8 GEMMs need; use {}, or --dtype bf16",
        what, number, fp8_multiple, fix);
  };
  const auto tp = static_cast<std::uint64_t>(g.tp);
  const std::string_view smaller_tp = g.tp > 1 ? "a smaller tp" : "another model";
  require(g.tokens, fmt::format("sequence x microbatch = {} x {}", g.sequence, g.microbatch),
          "a microbatch that makes it one");
  require(g.hidden, "hidden", "another model");
  require(g.ffn, "ffn on a rank", smaller_tp);
  require(g.context, "heads x head_size on a rank", smaller_tp);
  require(g.qkv, "(heads + 2 x kv_heads) x head_size on a rank", smaller_tp);
  if (g.gathers()) require(g.hidden / tp, "hidden on a rank", "a smaller tp, or tp_output=reduce");
}

LinearWriter::Operand LinearWriter::cast(const Matrix& src, std::uint64_t rows,
                                         std::uint64_t columns, const Destination& to) {
  const auto allocate = [&](DType type, Role role, std::uint64_t count) {
    return builder_.allocate({.dtype = type,
                              .role = role,
                              .microbatch = role == Role::activation ? to.microbatch : -1,
                              .count = count});
  };
  Operand result;
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
                                 .src = src,
                                 .dst = result.plain,
                                 .transposed = result.transposed,
                                 .scaling = program::CastScale::amax,
                                 .target = program::decode(format, format.largest),
                                 .descale = result.descale});
  return result;
}

LinearWriter::Operand LinearWriter::weight(const Linear& linear, Copy copy) {
  const Matrix stored = dense(linear.weight, linear.inputs, linear.outputs);
  if (linear.operands == Operands::stored) return {.plain = stored};
  if (!linear.weight_stays) {
    Destination to{.type = types_.operand, .plain = {}, .transposed = {}};
    (copy == Copy::plain ? to.plain : to.transposed) = Role::workspace;
    return cast(stored, linear.inputs, linear.outputs, to);
  }
  const auto known = weights_.find(linear.place);
  if (known != weights_.end()) return known->second;
  // The weight is cast once for all microbatches: in the first forward pass of a step, before its
  // GEMM.
  const Place place = builder_.place();
  builder_.at({.phase = place.phase, .layer = place.layer, .microbatch = -1});
  const Operand operand =
      cast(stored, linear.inputs, linear.outputs,
           {.type = types_.operand, .plain = Role::weight, .transposed = Role::weight});
  builder_.at(place);
  weights_[linear.place] = operand;
  return operand;
}

void LinearWriter::release_weight(const Linear& linear, const Operand& weight) {
  if (!linear.weight_stays) release(weight);
}

Gemm LinearWriter::forward_product(const Linear& linear, std::uint64_t rows, const Matrix& x,
                                   const Matrix& y, const Addend& addend) const {
  return {.m = extent(rows),
          .n = extent(linear.outputs),
          .k = extent(linear.inputs),
          .mode = types_.mode,
          .alpha = linear.gain,
          .beta = addend.beta,
          .a = x,
          .b = dense(linear.weight, linear.inputs, linear.outputs),
          .c = addend.c,
          .d = y};
}

Gemm LinearWriter::input_product(const Linear& linear, std::uint64_t rows, const Matrix& dy,
                                 const Matrix& dx, const Addend& addend) const {
  Gemm gemm = forward_product(linear, rows, dy, dx, addend);
  std::swap(gemm.n, gemm.k);
  gemm.transpose_b = Transpose::yes;
  return gemm;
}

Gemm LinearWriter::weight_product(const Linear& linear, std::uint64_t rows, double beta,
                                  const Matrix& x, const Matrix& dy) const {
  const Matrix gradient = dense(linear.gradient, linear.inputs, linear.outputs);
  return {.m = extent(linear.inputs),
          .n = extent(linear.outputs),
          .k = extent(rows),
          .transpose_a = Transpose::yes,
          .mode = types_.mode,
          .alpha = linear.gain,
          .beta = beta,
          .a = x,
          .b = dy,
          .c = gradient,
          .d = gradient};
}

void LinearWriter::emit_rows(const Linear& linear, const Gemm& product) {
  if (linear.operands == Operands::cast) throw std::logic_error("a layer that casts, by rows");
  builder_.emit(0, product);
}

void LinearWriter::forward(const Linear& linear, int microbatch, const Matrix& x, const Matrix& y,
                           const Addend& addend, InputCopy input_copy) {
  Gemm gemm = forward_product(linear, g_.tokens, x, y, addend);
  gemm.accumulation = types_.forward;
  if (linear.operands == Operands::stored) return builder_.emit(0, gemm);
  const Operand w = weight(linear, Copy::transposed);
  Destination to{.type = types_.operand,
                 .plain = Role::workspace,
                 .transposed = Role::activation,
                 .microbatch = microbatch};
  if (input_copy == InputCopy::dropped) to.transposed.reset();
  const Operand input = cast(x, g_.tokens, linear.inputs, to);
  gemm.a = input.plain;
  gemm.b = w.transposed;
  gemm.transpose_b = Transpose::yes;
  gemm.descale_a = input.descale;
  gemm.descale_b = w.descale;
  builder_.emit(0, gemm);
  release_weight(linear, w);
  release(input.plain);
  if (input_copy == InputCopy::dropped) {
    builder_.release(input.descale);
  } else {
    inputs_[{linear.place, microbatch}] = input;
  }
}

void LinearWriter::keep_input(const Linear& linear, int microbatch, const Matrix& x) {
  if (linear.operands == Operands::stored) return;
  inputs_[{linear.place, microbatch}] = cast(x, g_.tokens, linear.inputs,
                                             {.type = types_.operand,
                                              .plain = {},
                                              .transposed = Role::activation,
                                              .microbatch = microbatch});
}

LinearWriter::Operand LinearWriter::gradient(const Linear& linear, const Matrix& dy) {
  if (linear.operands == Operands::stored) return {.plain = dy};
  return cast(
      dy, g_.tokens, linear.outputs,
      {.type = types_.gradient_operand, .plain = Role::workspace, .transposed = Role::workspace});
}

void LinearWriter::release(const Operand& gradient) {
  if (gradient.descale == no_buffer) return;  // not cast: the buffer belongs to the caller
  release(gradient.plain);
  release(gradient.transposed);
  builder_.release(gradient.descale);
}

void LinearWriter::release(const Matrix& copy) {
  if (copy.slice.buffer != no_buffer) builder_.release(copy.slice.buffer);
}

void LinearWriter::input_gradient(const Linear& linear, const Operand& dy, const Matrix& dx,
                                  const Addend& addend) {
  const Operand w = weight(linear, Copy::plain);
  Gemm gemm = input_product(linear, g_.tokens, dy.plain, dx, addend);
  gemm.accumulation = types_.backward;
  gemm.b = w.plain;
  gemm.descale_a = dy.descale;
  gemm.descale_b = w.descale;
  builder_.emit(0, gemm);
  release_weight(linear, w);
}

void LinearWriter::weight_gradient(const Linear& linear, int microbatch, const Matrix& x,
                                   const Operand& dy) {
  Gemm gemm = weight_product(linear, g_.tokens, linear.gradient_beta, x, dy.plain);
  gemm.accumulation = types_.backward;
  if (linear.operands == Operands::stored) return builder_.emit(0, gemm);
  const Operand input = inputs_.extract({linear.place, microbatch}).mapped();
  gemm.transpose_a = Transpose::no;
  gemm.transpose_b = Transpose::yes;
  gemm.a = input.transposed;
  gemm.b = dy.transposed;
  gemm.descale_a = input.descale;
  gemm.descale_b = dy.descale;
  builder_.emit(0, gemm);
  release(input.transposed);
  builder_.release(input.descale);
}

}  // namespace isoscale::workloads::stack
