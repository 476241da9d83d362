// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/linear.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "base/error.hpp"
#include "program/low_precision.hpp"
#include "workloads/stack/buffers.hpp"

namespace isoscale::workloads::stack {

using program::BufferId;
using program::DType;
using program::Gemm;
using program::Matrix;
using program::Role;
using program::Transpose;

namespace {

/// Throws std::logic_error for a layer that casts its operands: a cast has one scale for a whole
/// tensor, so single rows cannot be cast.
void require_stored(const Linear& linear) {
  if (linear.operands == Operands::cast) throw std::logic_error("a layer that casts, by rows");
}

}  // namespace

void require_fp8_extents(const Geometry& g) {
  const auto require = [&](std::uint64_t number, std::string_view what, std::string_view fix) {
    if (number % fp8_multiple == 0) return;
    throw base::UsageError(
        fmt::format("--dtype fp8: {} = {} is not a multiple of {}, as fp8 GEMMs need; use {}, or "
                    "--dtype bf16",
                    what, number, fp8_multiple, fix));
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
    result.plain = dense(builder_.whole(plain), rows, columns);
  }
  if (to.transposed) {
    const BufferId transposed = allocate(to.type, *to.transposed, rows * columns);
    result.transposed = dense(builder_.whole(transposed), columns, rows);
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

LinearWriter::Operand LinearWriter::weight(const Linear& linear) {
  const Matrix stored = dense(linear.weight, linear.inputs, linear.outputs);
  if (linear.operands == Operands::stored) return {.plain = stored};
  const auto known = weights_.find(linear.weight.offset);
  if (known != weights_.end()) return known->second;
  // The weight is cast only once for all microbatches, in the first forward pass of a step, before
  // anything else.
  const program::Place place = builder_.place();
  builder_.at({.phase = place.phase, .layer = place.layer, .microbatch = -1});
  const Operand operand =
      cast(stored, linear.inputs, linear.outputs,
           {.type = types_.operand, .plain = Role::weight, .transposed = Role::weight});
  builder_.at(place);
  weights_[linear.weight.offset] = operand;
  return operand;
}

void LinearWriter::forward(const Linear& linear, int microbatch, const Matrix& x, const Matrix& y,
                           const Addend& addend, InputCopy input_copy) {
  const Operand w = weight(linear);
  Gemm gemm{.m = extent(g_.tokens),
            .n = extent(linear.outputs),
            .k = extent(linear.inputs),
            .mode = types_.mode,
            .accumulation = types_.forward,
            .alpha = linear.gain,
            .beta = addend.beta,
            .a = x,
            .b = w.plain,
            .c = addend.c,
            .d = y};
  if (linear.operands == Operands::stored) {
    builder_.emit(0, gemm);
    return;
  }
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
  release(input.plain);
  if (input_copy == InputCopy::dropped) {
    builder_.release(input.descale);
  } else {
    inputs_[{linear.weight.offset, microbatch}] = input;
  }
}

void LinearWriter::keep_input(const Linear& linear, int microbatch, const Matrix& x) {
  if (linear.operands == Operands::stored) return;
  inputs_[{linear.weight.offset, microbatch}] = cast(x, g_.tokens, linear.inputs,
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
  if (gradient.descale == program::no_buffer) return;  // not cast: the buffer belongs to the caller
  release(gradient.plain);
  release(gradient.transposed);
  builder_.release(gradient.descale);
}

void LinearWriter::release(const Matrix& copy) { builder_.release(copy.slice.buffer); }

void LinearWriter::input_gradient(const Linear& linear, const Operand& dy, const Matrix& dx,
                                  const Addend& addend) {
  const Operand w = weight(linear);
  builder_.emit(0, Gemm{.m = extent(g_.tokens),
                        .n = extent(linear.inputs),
                        .k = extent(linear.outputs),
                        .transpose_b = Transpose::yes,
                        .mode = types_.mode,
                        .accumulation = types_.backward,
                        .alpha = linear.gain,
                        .beta = addend.beta,
                        .a = dy.plain,
                        .b = w.plain,
                        .c = addend.c,
                        .d = dx,
                        .descale_a = dy.descale,
                        .descale_b = w.descale});
}

void LinearWriter::forward_rows(const Linear& linear, std::uint64_t rows, const Matrix& x,
                                const Matrix& y, const Addend& addend) {
  require_stored(linear);
  builder_.emit(0, Gemm{.m = extent(rows),
                        .n = extent(linear.outputs),
                        .k = extent(linear.inputs),
                        .mode = types_.mode,
                        .alpha = linear.gain,
                        .beta = addend.beta,
                        .a = x,
                        .b = dense(linear.weight, linear.inputs, linear.outputs),
                        .c = addend.c,
                        .d = y});
}

void LinearWriter::input_gradient_rows(const Linear& linear, std::uint64_t rows, const Matrix& dy,
                                       const Matrix& dx, const Addend& addend) {
  require_stored(linear);
  builder_.emit(0, Gemm{.m = extent(rows),
                        .n = extent(linear.inputs),
                        .k = extent(linear.outputs),
                        .transpose_b = Transpose::yes,
                        .mode = types_.mode,
                        .alpha = linear.gain,
                        .beta = addend.beta,
                        .a = dy,
                        .b = dense(linear.weight, linear.inputs, linear.outputs),
                        .c = addend.c,
                        .d = dx});
}

void LinearWriter::weight_gradient_rows(const Linear& linear, std::uint64_t rows, double beta,
                                        const Matrix& x, const Matrix& dy) {
  require_stored(linear);
  const Matrix gradient = dense(linear.gradient, linear.inputs, linear.outputs);
  builder_.emit(0, Gemm{.m = extent(linear.inputs),
                        .n = extent(linear.outputs),
                        .k = extent(rows),
                        .transpose_a = Transpose::yes,
                        .mode = types_.mode,
                        .alpha = linear.gain,
                        .beta = beta,
                        .a = x,
                        .b = dy,
                        .c = gradient,
                        .d = gradient});
}

void LinearWriter::weight_gradient(const Linear& linear, int microbatch, const Matrix& x,
                                   const Operand& dy) {
  const Matrix gradient = dense(linear.gradient, linear.inputs, linear.outputs);
  Gemm gemm{.m = extent(linear.inputs),
            .n = extent(linear.outputs),
            .k = extent(g_.tokens),
            .transpose_a = Transpose::yes,
            .mode = types_.mode,
            .accumulation = types_.backward,
            .alpha = linear.gain,
            .beta = linear.gradient_beta,
            .a = x,
            .b = dy.plain,
            .c = gradient,
            .d = gradient};
  if (linear.operands == Operands::stored) {
    builder_.emit(0, gemm);
    return;
  }
  const auto kept = inputs_.find({linear.weight.offset, microbatch});
  const Operand input = kept->second;
  inputs_.erase(kept);
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
