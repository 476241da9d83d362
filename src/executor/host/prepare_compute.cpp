// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "executor/host/prepare.hpp"
#include "executor/host/prepare_ops.hpp"
#include "executor/op_requirements.hpp"
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
    if (!exists(*matrix)) continue;
    const DType type = resolver.dtype(matrix->slice);
    if (type == DType::f16 || type == DType::bf16) continue;  // see make_host_executor()
    static_cast<void>(resolver.element(matrix->slice, "an operand of a cast"));
  }
  if (exists(op.transposed) || op.scaling != program::CastScale::fixed) {
    throw base::Error("a cast with a transposed copy or a measured scale: the host has neither");
  }
  return CastCall{.src = stored(resolver, op.src, op.rows, op.columns),
                  .dst = stored(resolver, op.dst, op.rows, op.columns),
                  .scale = op.scale};
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
  const Element weight = resolver.element(op.weight, "the weight");
  const Element gradient = resolver.element(op.gradient, "the gradient");
  const bool has_master = op.master.buffer != program::no_buffer;
  const bool is_adam = op.optimizer == program::Optimizer::adam;
  UpdateCall call{.optimizer = op.optimizer,
                  .state = has_master ? resolver.element(op.master, "the master weight") : weight,
                  .gradient_type = gradient,
                  .weight_type = weight,
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

Call prepare_op(const Resolver& resolver, const program::Checksum& op) {
  require_sum(resolver, op);
  return ChecksumCall{.src = stored(resolver, op.src, op.rows, op.columns, op.batch),
                      .sum = resolver.address(op.sum),
                      .flip = resolver.address_or_null(op.flip)};
}

}  // namespace isoscale::executor::host
