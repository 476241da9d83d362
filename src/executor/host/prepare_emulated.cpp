// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "base/error.hpp"
#include "executor/op_requirements.hpp"
#include "executor/host/prepare_ops.hpp"
#include "program/operands.hpp"
#include "program/low_precision.hpp"

namespace isoscale::executor::host {
namespace {

using program::DType;

StoredMatrix stored(const Resolver& resolver, const program::Matrix& matrix, std::uint64_t rows,
                    std::uint64_t columns, std::uint64_t batch = 1) {
  return {.type = resolver.dtype(matrix.slice),
          .data = resolver.address(matrix, rows, columns, batch),
          .rows = rows,
          .columns = columns,
          .batch = batch,
          .row_stride = matrix.row_stride,
          .batch_stride = matrix.batch_stride};
}

/// Null when there is no buffer.
float* scale_address(const Resolver& resolver, program::BufferId buffer) {
  if (buffer == program::no_buffer) return nullptr;
  const program::Slice slice = program::scalar(buffer);
  if (resolver.dtype(slice) != DType::f32) throw base::Error("a scale is one f32 element");
  return reinterpret_cast<float*>(resolver.address(slice));
}

/// Narrow types are computed in f32.
Element wide_element(const Resolver& resolver, const program::Slice& slice, const char* role) {
  if (program::narrow_format(resolver.dtype(slice))) return Element::f32;
  return resolver.element(slice, role);
}

void require_narrow_or_f32(const StoredMatrix& matrix, const char* role) {
  if (matrix.type == DType::f32 || program::narrow_format(matrix.type)) return;
  throw base::Error(fmt::format("{} is {}: what is emulated is computed in f32", role,
                                program::name(matrix.type)));
}

}  // namespace

Call prepare_op(const Resolver& resolver, const program::Checksum& op) {
  require_sum(resolver, op);
  return ChecksumCall{.src = stored(resolver, op.src, op.rows, op.columns, op.batch),
                      .sum = resolver.address(op.sum),
                      .flip = resolver.address_or_null(op.flip)};
}

CastCall prepare_cast(const Resolver& resolver, const program::Cast& op) {
  if (!exists(op.dst) && !exists(op.transposed)) throw base::Error("a cast without destination");
  const bool measures = op.scaling == program::CastScale::amax;
  if (measures && op.descale == program::no_buffer) {
    throw base::Error("a cast that measures its source has nowhere to leave the scale");
  }
  CastCall call{.src = stored(resolver, op.src, op.rows, op.columns),
                .dst = {},
                .transposed = {},
                .scaling = op.scaling,
                .scale = op.scale,
                .target = op.target,
                .descale = measures ? scale_address(resolver, op.descale) : nullptr};
  if (exists(op.dst)) call.dst = stored(resolver, op.dst, op.rows, op.columns);
  if (exists(op.transposed)) {
    call.transposed = stored(resolver, op.transposed, op.columns, op.rows);
    if (exists(op.dst) && call.dst.type != call.transposed.type) {
      throw base::Error("the two destinations of a cast differ in type");
    }
  }
  return call;
}

bool needs_emulation(const Resolver& resolver, const program::Payload& payload) {
  bool result = false;
  program::for_each_slice(payload, [&](const program::Slice& slice, program::Mode) {
    result = result || program::narrow_format(resolver.dtype(slice));
  });
  if (const auto* gemm = std::get_if<program::Gemm>(&payload)) {
    result = result || gemm->mode == program::ComputeMode::tf32 ||
             gemm->descale_a != program::no_buffer || gemm->descale_b != program::no_buffer;
  }
  return result;
}

Call prepare_emulated(const Resolver& resolver, const program::Gemm& op) {
  const bool a_flips = op.transpose_a == program::Transpose::yes;
  const bool b_flips = op.transpose_b == program::Transpose::yes;
  EmulatedGemmCall call{
      .transpose_a = op.transpose_a,
      .transpose_b = op.transpose_b,
      .mode = op.mode,
      .alpha = op.alpha,
      .beta = op.beta,
      .operands = {stored(resolver, op.a, a_flips ? op.k : op.m, a_flips ? op.m : op.k, op.batch),
                   stored(resolver, op.b, b_flips ? op.n : op.k, b_flips ? op.k : op.n, op.batch),
                   {},
                   stored(resolver, op.d, op.m, op.n, op.batch)},
      .descale_a = scale_address(resolver, op.descale_a),
      .descale_b = scale_address(resolver, op.descale_b)};
  if (op.beta != 0) {
    call.operands[2] = stored(resolver, op.c, op.m, op.n, op.batch);
    if (call.operands[2].type != call.operands[3].type) {
      throw base::Error("C and D differ in type");
    }
  }
  require_narrow_or_f32(call.operands[0], "A");
  require_narrow_or_f32(call.operands[1], "B");
  require_narrow_or_f32(call.operands[3], "D");
  return call;
}

Call prepare_emulated(const Resolver& resolver, const program::Add& op) {
  EmulatedAddCall call{.operands = {stored(resolver, op.a, op.rows, op.columns),
                                    stored(resolver, op.b, op.rows, op.columns),
                                    stored(resolver, op.dst, op.rows, op.columns)},
                       .scale = static_cast<float>(op.scale)};
  for (const StoredMatrix& operand : call.operands) {
    if (operand.type != call.operands.back().type) {
      throw base::Error("addend and sum differ in type");
    }
  }
  return call;
}

Call prepare_emulated(const Resolver& resolver, const program::Cast& op) {
  return prepare_cast(resolver, op);
}

Call prepare_emulated(const Resolver& resolver, const program::Update& op, Powers powers_mode) {
  const UpdateElements elements{.weight = wide_element(resolver, op.weight, "the weight"),
                                .gradient = wide_element(resolver, op.gradient, "the gradient")};
  return EmulatedUpdateCall{.wide = prepare_update(resolver, op, powers_mode, elements),
                            .weight = resolver.dtype(op.weight),
                            .gradient = resolver.dtype(op.gradient)};
}

}  // namespace isoscale::executor::host
