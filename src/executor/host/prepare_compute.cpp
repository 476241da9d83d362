// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "executor/host/prepare.hpp"
#include "executor/host/prepare_ops.hpp"
#include "executor/op_requirements.hpp"
#include "program/low_precision.hpp"
#include "program/operands.hpp"

namespace isoscale::executor::host {
namespace {

/// Returns a stride for BLAS. BLAS takes int, and demands a row stride of at least a row even if
/// there is only one row.
int blas_stride(const program::Matrix& matrix, std::uint64_t rows, std::uint64_t columns) {
  const std::uint64_t stride =
      rows <= 1 ? std::max<std::uint64_t>({matrix.row_stride, columns, 1}) : matrix.row_stride;
  if (stride < std::max<std::uint64_t>(columns, 1)) {
    throw base::Error(fmt::format("a matrix with rows of {} elements has a row stride of {}",
                                  columns, matrix.row_stride));
  }
  if (stride > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) {
    throw base::Error(fmt::format("a row stride of {} is more than BLAS can take", stride));
  }
  return static_cast<int>(stride);
}

int blas_extent(std::uint32_t extent) {
  if (extent > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
    throw base::Error(fmt::format("a matrix extent of {} is more than BLAS can take", extent));
  }
  return static_cast<int>(extent);
}

void require_same(Element a, Element b, const char* what) {
  if (a != b) throw base::Error(fmt::format("{} differ in type", what));
}

bool same_layout(const program::Matrix& a, const program::Matrix& b, const program::Gemm& op) {
  return (op.m <= 1 || a.row_stride == b.row_stride) &&
         (op.batch <= 1 || a.batch_stride == b.batch_stride);
}

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

/// Returns the address of the scale in a buffer; null if there is no buffer.
float* scale_address(const Resolver& resolver, program::BufferId buffer) {
  if (buffer == program::no_buffer) return nullptr;
  const program::Slice slice = program::scalar(buffer);
  if (resolver.dtype(slice) != DType::f32) throw base::Error("a scale is one f32 element");
  return reinterpret_cast<float*>(resolver.address(slice));
}

/// Returns the type in which a slice is computed when types are emulated: f32 for narrow types.
Element wide_element(const Resolver& resolver, const program::Slice& slice, const char* role) {
  if (program::narrow_format(resolver.dtype(slice))) return Element::f32;
  return resolver.element(slice, role);
}

void require_narrow_or_f32(const StoredMatrix& matrix, const char* role) {
  if (matrix.type == DType::f32 || program::narrow_format(matrix.type)) return;
  throw base::Error(fmt::format("{} is {}: what is emulated is computed in f32", role,
                                program::name(matrix.type)));
}

/// Prepares a cast between any floating types.
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

/// The types in which an update reads and writes its weight and its gradient.
struct UpdateElements {
  Element weight, gradient;
};

UpdateCall prepare_update(const Resolver& resolver, const program::Update& op, Powers powers_mode,
                          UpdateElements elements) {
  const bool has_master = op.master.buffer != program::no_buffer;
  const bool is_adam = op.optimizer == program::Optimizer::adam;
  UpdateCall call{
      .optimizer = op.optimizer,
      .state = has_master ? resolver.element(op.master, "the master weight") : elements.weight,
      .gradient_type = elements.gradient,
      .weight_type = elements.weight,
      .powers_mode = powers_mode,
      .count = op.weight.count,
      .weight = resolver.address(op.weight),
      .master = resolver.address_or_null(op.master),
      .gradient = resolver.address(op.gradient),
      .gradient_scale = op.gradient_scale,
      .rate = op.rate,
      .beta1 = op.beta1,
      .beta2 = op.beta2,
      .epsilon = op.epsilon};
  const auto require_count = [&](const program::Slice& slice, const char* role) {
    if (slice.count == op.weight.count) return;
    throw base::Error(
        fmt::format("{} has {} elements, the weight {}", role, slice.count, op.weight.count));
  };
  require_count(op.gradient, "the gradient");
  if (has_master) require_count(op.master, "the master weight");
  if (!is_adam) return call;
  require_count(op.moment1, "moment 1");
  require_count(op.moment2, "moment 2");
  require_same(call.state, resolver.element(op.moment1, "moment 1"), "moment 1 and weight");
  require_same(call.state, resolver.element(op.moment2, "moment 2"), "moment 2 and weight");
  if (op.powers.count != 2) throw base::Error("the powers of an Adam update are two numbers");
  call.powers_type = resolver.element(op.powers, "the powers");
  call.moment1 = resolver.address(op.moment1);
  call.moment2 = resolver.address(op.moment2);
  call.powers = resolver.address(op.powers);
  return call;
}

}  // namespace

Element Resolver::element(const program::Slice& slice, std::string_view role) const {
  switch (dtype(slice)) {
    case program::DType::f32:
      return Element::f32;
    case program::DType::f64:
      return Element::f64;
    default:
      throw base::Error(fmt::format(
          "{} is {}, but the host computes in f32 and f64 only: ask for --dtype f32 or f64, or "
          "for another device",
          role, program::name(dtype(slice))));
  }
}

Call prepare_op(const Resolver& resolver, const program::Gemm& op) {
  if (op.descale_a != program::no_buffer || op.descale_b != program::no_buffer) {
    throw base::Error("a GEMM of scaled operands: the host computes with f64 and f32 as they are");
  }
  const Element element = resolver.element(op.d.slice, "D");
  require_same(element, resolver.element(op.a.slice, "A"), "A and D");
  require_same(element, resolver.element(op.b.slice, "B"), "B and D");
  const bool a_flips = op.transpose_a == program::Transpose::yes;
  const bool b_flips = op.transpose_b == program::Transpose::yes;
  const std::uint64_t a_rows = a_flips ? op.k : op.m, a_columns = a_flips ? op.m : op.k;
  const std::uint64_t b_rows = b_flips ? op.n : op.k, b_columns = b_flips ? op.k : op.n;
  GemmCall call{.element = element,
                .transpose_a = op.transpose_a,
                .transpose_b = op.transpose_b,
                .m = blas_extent(op.m),
                .n = blas_extent(op.n),
                .k = blas_extent(op.k),
                .row_stride_a = blas_stride(op.a, a_rows, a_columns),
                .row_stride_b = blas_stride(op.b, b_rows, b_columns),
                .row_stride_d = blas_stride(op.d, op.m, op.n),
                .batch = op.batch,
                .batch_stride_a = op.a.batch_stride,
                .batch_stride_b = op.b.batch_stride,
                .batch_stride_d = op.d.batch_stride,
                .alpha = op.alpha,
                .beta = op.beta,
                .a = resolver.address(op.a, a_rows, a_columns, op.batch),
                .b = resolver.address(op.b, b_rows, b_columns, op.batch),
                .d = resolver.address(op.d, op.m, op.n, op.batch),
                .c_to_d = {}};
  if (op.beta != 0) {
    require_same(element, resolver.element(op.c.slice, "C"), "C and D");
    const std::byte* const c = resolver.address(op.c, op.m, op.n, op.batch);
    if (c != call.d || !same_layout(op.c, op.d, op)) {
      call.c_to_d = strided_copy(
          resolver, {.rows = op.m, .columns = op.n, .batch = op.batch, .src = op.c, .dst = op.d});
    }
  }
  return call;
}

Call prepare_op(const Resolver& resolver, const program::Copy& op) {
  return strided_copy(resolver, op);
}

Call prepare_op(const Resolver& resolver, const program::Add& op) {
  const program::DType type = resolver.dtype(op.dst.slice);
  if (!is_integer(type)) static_cast<void>(resolver.element(op.dst.slice, "the sum"));
  require_add(resolver, op);
  AddCall call{.type = type,
               .rows = op.rows,
               .columns = op.columns,
               .a = resolver.address(op.a, op.rows, op.columns, 1),
               .b = resolver.address(op.b, op.rows, op.columns, 1),
               .dst = resolver.address(op.dst, op.rows, op.columns, 1),
               .a_row = op.a.row_stride,
               .b_row = op.b.row_stride,
               .dst_row = op.dst.row_stride,
               .scale = op.scale};
  const bool is_dense =
      call.a_row == call.columns && call.b_row == call.columns && call.dst_row == call.columns;
  if (is_dense) {
    call.columns *= call.rows;
    call.rows = std::min<std::size_t>(call.rows, 1);
  }
  return call;
}

Call prepare_op(const Resolver& resolver, const program::Cast& op) {
  for (const program::Matrix* matrix : {&op.src, &op.dst, &op.transposed}) {
    if (matrix->slice.buffer == program::no_buffer) continue;
    const program::DType type = resolver.dtype(matrix->slice);
    if (type == program::DType::f16 || type == program::DType::bf16) continue;  // see NarrowTypes
    static_cast<void>(resolver.element(matrix->slice, "an operand of a cast"));
  }
  return prepare_cast(resolver, op);
}

Call prepare_op(const Resolver& resolver, const program::Fill& op) {
  require_fill(resolver, op);
  return FillCall{.type = resolver.dtype(op.dst),
                  .dst = resolver.address(op.dst),
                  .extents = op.shard.extents,
                  .local = op.shard.local,
                  .global = op.shard.global,
                  .first = op.shard.first(resolver.coordinates()),
                  .grid = grid_of(op),
                  .scale = program::power_of_two(op.exponent),
                  .source = op.source,
                  .value = op.value};
}

Call prepare_op(const Resolver& resolver, const program::Update& op, Powers powers_mode) {
  return prepare_update(resolver, op, powers_mode,
                        {.weight = resolver.element(op.weight, "the weight"),
                         .gradient = resolver.element(op.gradient, "the gradient")});
}

Call prepare_op(const Resolver& resolver, const program::Checksum& op) {
  require_sum(resolver, op);
  return ChecksumCall{.src = stored(resolver, op.src, op.rows, op.columns, op.batch),
                      .sum = resolver.address(op.sum),
                      .flip = resolver.address_or_null(op.flip)};
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
