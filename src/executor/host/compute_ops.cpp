// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/compute_ops.hpp"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/low_precision.hpp"

namespace isoscale::executor::host {
namespace {

using program::Add;
using program::Checksum;
using program::DType;
using program::Fill;
using program::Update;

template <class T>
T* as(const OperandAt& at) {
  return reinterpret_cast<T*>(at.data);
}

CBLAS_TRANSPOSE blas(program::Transpose transpose) {
  return transpose == program::Transpose::yes ? CblasTrans : CblasNoTrans;
}

/// Returns the row stride that BLAS is given for a matrix, in elements. BLAS takes an int, and
/// demands at least the length of a row even if the matrix has only one row.
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

bool same_layout(const program::Matrix& a, const program::Matrix& b, const program::Gemm& op) {
  return (op.m <= 1 || a.row_stride == b.row_stride) &&
         (op.batch <= 1 || a.batch_stride == b.batch_stride);
}

// Memory bandwidth limits the addition of long rows, so each of these loops reads and writes an
// element only once. Signed integers are added as unsigned ones, so that overflow wraps around.

template <class T>
void add_row(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ dst,
             std::size_t count, T scale) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = static_cast<T>(a[i] + scale * b[i]);
}

template <class T>
void add_onto_a(const T* __restrict__ b, T* __restrict__ dst, std::size_t count, T scale) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = static_cast<T>(dst[i] + scale * b[i]);
}

template <class T>
void add_onto_b(const T* __restrict__ a, T* __restrict__ dst, std::size_t count, T scale) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = static_cast<T>(a[i] + scale * dst[i]);
}

template <class T>
void add_onto_both(T* dst, std::size_t count, T scale) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = static_cast<T>(dst[i] + scale * dst[i]);
}

/// Computes dst = a + scale * b. `dst` may be the same memory as `a`, `b` or both. Each of these
/// cases has its own loop, so that the compiler can vectorise it.
template <class T>
void add(const Arguments<Add>& call) {
  const MatrixAt at_a = call[&Add::a], at_b = call[&Add::b], at_dst = call[&Add::dst];
  std::size_t rows = call.op.rows, columns = call.op.columns;
  const bool is_dense =
      at_a.row_stride == columns && at_b.row_stride == columns && at_dst.row_stride == columns;
  if (is_dense) columns *= std::exchange(rows, std::min<std::size_t>(rows, 1));
  const auto* a = as<const T>(at_a);
  const auto* b = as<const T>(at_b);
  auto* dst = as<T>(at_dst);
  const auto scale = program::constant_as<T>(call.op.scale);
  for (std::size_t row = 0; row < rows; ++row) {
    if (dst == a && dst == b) {
      add_onto_both(dst, columns, scale);
    } else if (dst == a) {
      add_onto_a(b, dst, columns, scale);
    } else if (dst == b) {
      add_onto_b(a, dst, columns, scale);
    } else {
      add_row(a, b, dst, columns, scale);
    }
    a += at_a.row_stride;
    b += at_b.row_stride;
    dst += at_dst.row_stride;
  }
}

/// Writes value_of(index) to each element of this rank's shard; the index is the element's position
/// in the whole tensor.
template <class T, class ValueOf>
void fill_shard(const Arguments<Fill>& call, const ValueOf& value_of) {
  const program::Shard& shard = call.op.shard;
  auto* const dst = as<T>(call[&Fill::dst]);
  for (std::uint64_t i = 0; i < shard.extents[0]; ++i) {
    for (std::uint64_t j = 0; j < shard.extents[1]; ++j) {
      std::uint64_t local = i * shard.local[0] + j * shard.local[1];
      std::uint64_t index = shard.base + i * shard.global[0] + j * shard.global[1];
      for (std::uint64_t k = 0; k < shard.extents[2]; ++k) {
        dst[local] = value_of(index);
        local += shard.local[2];
        index += shard.global[2];
      }
    }
  }
}

template <class T>
void fill(const Arguments<Fill>& call) {
  const program::FillGrid grid = grid_of(call.op);
  const double scale = program::power_of_two(call.op.exponent);
  if (call.op.source == program::FillSource::constant) {
    const T value = program::constant_as<T>(call.op.value);
    return fill_shard<T>(call, [value](std::uint64_t /*index*/) { return value; });
  }
  if constexpr (!std::is_integral_v<T>) {
    if (call.op.source == program::FillSource::normal) {
      return fill_shard<T>(
          call, [&](std::uint64_t index) { return program::fill_normal<T>(grid, index, scale); });
    }
  }
  fill_shard<T>(call, [&](std::uint64_t index) {
    return program::fill_value<T>(program::fill_integer(grid, index), scale);
  });
}

/// Fills elements of a floating type narrower than f32. Each value is computed in f32 or f64 and
/// then rounded once. Random integers have at most 255 different values, so their codes are
/// computed in advance.
template <class Code>
void fill_narrow(const Arguments<Fill>& call, const program::NarrowFormat& format) {
  const program::FillGrid grid = grid_of(call.op);
  const double scale = program::power_of_two(call.op.exponent);
  const auto code = [&](double value) { return static_cast<Code>(program::encode(format, value)); };
  if (call.op.source == program::FillSource::constant) {
    return fill_shard<Code>(
        call, [value = code(call.op.value)](std::uint64_t /*index*/) { return value; });
  }
  if (call.op.source == program::FillSource::normal) {
    return fill_shard<Code>(call, [&](std::uint64_t index) {
      return code(static_cast<double>(program::fill_normal<float>(grid, index, scale)));
    });
  }
  std::array<Code, 255> codes{};
  const int range = grid.range;
  const auto code_of = [&](int integer) -> Code& {
    const int place = integer + range;
    return codes.at(static_cast<std::size_t>(place));
  };
  for (int i = -range; i <= range; ++i) {
    code_of(i) = code(program::fill_value<double>(i, scale));
  }
  fill_shard<Code>(
      call, [&](std::uint64_t index) { return code_of(program::fill_integer(grid, index)); });
}

/// The memory to which an optimizer writes an updated weight. The update is computed in type State.
/// `w` is the master copy of the weight if the program keeps one; store() then also writes the
/// rounded value to the weight itself. Without a master copy `w` is the weight.
template <class State, class Weight>
struct Target {
  State* __restrict__ w;
  Weight* __restrict__ rounded;  ///< the weight; null without a master copy

  void store(std::size_t i, State value) const {
    w[i] = value;
    if (rounded != nullptr) rounded[i] = static_cast<Weight>(value);
  }
};

template <class State, class Gradient, class Weight>
void sgd(const Arguments<Update>& call, Target<State, Weight> target) {
  const auto* __restrict__ gradient = as<const Gradient>(call[&Update::gradient]);
  const auto scale = static_cast<State>(call.op.gradient_scale);
  const auto rate = static_cast<State>(call.op.rate);
  for (std::size_t i = 0; i < call.op.weight.count; ++i) {
    const State g = static_cast<State>(gradient[i]) * scale;
    target.store(i, target.w[i] - rate * g);
  }
}

/// Returns Adam's bias corrections at step t, 1 - beta1^t and 1 - beta2^t.
template <class T>
std::pair<double, double> corrections(const Arguments<Update>& call) {
  auto* powers = as<T>(call[&Update::powers]);
  if (call.powers == Powers::advance) {
    powers[0] = static_cast<T>(static_cast<double>(powers[0]) * call.op.beta1);
    powers[1] = static_cast<T>(static_cast<double>(powers[1]) * call.op.beta2);
  }
  return {1 - static_cast<double>(powers[0]), 1 - static_cast<double>(powers[1])};
}

template <class State, class Gradient, class Weight>
void adam(const Arguments<Update>& call, Target<State, Weight> target) {
  const auto [first, second] = call[&Update::powers].type == DType::f32 ? corrections<float>(call)
                                                                        : corrections<double>(call);
  const auto* __restrict__ gradient = as<const Gradient>(call[&Update::gradient]);
  auto* __restrict__ moment1 = as<State>(call[&Update::moment1]);
  auto* __restrict__ moment2 = as<State>(call[&Update::moment2]);
  const Update& op = call.op;
  const auto scale = static_cast<State>(op.gradient_scale), rate = static_cast<State>(op.rate);
  const auto beta1 = static_cast<State>(op.beta1), beta2 = static_cast<State>(op.beta2);
  const auto fresh1 = static_cast<State>(1 - op.beta1), fresh2 = static_cast<State>(1 - op.beta2);
  const auto epsilon = static_cast<State>(op.epsilon);
  const auto correction1 = static_cast<State>(first), correction2 = static_cast<State>(second);
  for (std::size_t i = 0; i < call.op.weight.count; ++i) {
    const State g = static_cast<State>(gradient[i]) * scale;
    const State m = beta1 * moment1[i] + fresh1 * g;
    const State v = beta2 * moment2[i] + fresh2 * g * g;
    moment1[i] = m;
    moment2[i] = v;
    const State step = (m / correction1) / (std::sqrt(v / correction2) + epsilon);
    target.store(i, target.w[i] - rate * step);
  }
}

template <class State, class Gradient, class Weight>
void update(const Arguments<Update>& call) {
  const OperandAt weight = call[&Update::weight], master = call[&Update::master];
  const bool has_master = master.data != nullptr;
  const Target<State, Weight> target{.w = as<State>(has_master ? master : weight),
                                     .rounded = has_master ? as<Weight>(weight) : nullptr};
  if (call.op.optimizer == program::Optimizer::sgd) {
    sgd<State, Gradient>(call, target);
  } else {
    adam<State, Gradient>(call, target);
  }
}

/// Calls use() with a float or double, by the type of an operand, which must be f32 or f64.
template <class Use>
void with_type_of(const OperandAt& at, const Use& use) {
  at.type == DType::f32 ? use(float{}) : use(double{});
}

/// Calls use() with an unsigned integer of the size of an element of `type`.
template <class Use>
auto with_word(DType type, const Use& use) {
  switch (program::element_size(type)) {
    case 8:
      return use(std::uint64_t{});
    case 4:
      return use(std::uint32_t{});
    case 2:
      return use(std::uint16_t{});
    default:
      return use(std::uint8_t{});
  }
}

struct Sum {
  std::uint64_t sum = 0, not_finite = 0;
};

/// Returns the checksum of a matrix; `Word` is an unsigned integer of the size of an element.
template <class Word>
Sum sum_of(const Arguments<Checksum>& call) {
  const MatrixAt src = call[&Checksum::src];
  const std::uint64_t mask = program::exponent_mask(src.type);
  Sum result;
  std::uint64_t index = 0;
  for (std::size_t b = 0; b < call.op.batch; ++b) {
    for (std::size_t row = 0; row < call.op.rows; ++row) {
      const std::byte* at = src.data + (b * src.batch_stride + row * src.row_stride) * sizeof(Word);
      for (std::size_t column = 0; column < call.op.columns; ++column, at += sizeof(Word)) {
        Word bits = 0;
        std::memcpy(&bits, at, sizeof bits);
        result.sum += program::checksum_term(bits, index++);
        result.not_finite += program::is_finite(bits, mask) ? 0 : 1;
      }
    }
  }
  return result;
}

void flip(const Arguments<Checksum>& call) {
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), call[&Checksum::flip].data, sizeof words);
  const auto [element, mask] = words;
  const MatrixAt src = call[&Checksum::src];
  const std::uint64_t rows = call.op.rows, columns = call.op.columns;
  if (mask == 0 || element >= call.op.batch * rows * columns) return;
  const std::uint64_t row = element / columns;
  const std::uint64_t at =
      row / rows * src.batch_stride + row % rows * src.row_stride + element % columns;
  const std::size_t size = program::element_size(src.type);
  // All supported machines are little-endian, so copying a smaller element leaves the upper bits 0.
  std::uint64_t bits = 0;
  std::memcpy(&bits, src.data + at * size, size);
  bits ^= mask;
  std::memcpy(src.data + at * size, &bits, size);
}

}  // namespace

bool computes(program::OpKind kind, DType type) {
  using program::OpKind;
  if (type == DType::f64 || type == DType::f32) return true;
  if (kind == OpKind::fill || kind == OpKind::checksum) return true;
  if (kind == OpKind::cast) return type == DType::f16 || type == DType::bf16;
  return kind == OpKind::add && is_integer(type);
}

void require_computed(program::OpKind kind, const TypedOperand& operand) {
  using enum program::Elements;
  const bool is_computed = operand.elements == common || operand.elements == any;
  if (!is_computed || computes(kind, operand.type)) return;
  throw base::Error(
      fmt::format("{} op: {} is {}, but the host computes in f32 and f64 only: ask for --dtype f32 "
                  "or f64, or for another device",
                  program::name(kind), operand.name, program::name(operand.type)));
}

GemmCall gemm_call(const Resolver& resolver, const program::Gemm& op) {
  if (op.descale_a != program::no_buffer || op.descale_b != program::no_buffer) {
    throw base::Error(
        "a GEMM with scaled operands: the host computes in f64 and f32 without scales");
  }
  const auto at = arguments_of(resolver, op, [&](const TypedOperand& operand, const auto&) {
    require_computed(program::OpKind::gemm, operand);
    if (operand.type == resolver.dtype(op.d.slice)) return;
    throw base::Error(fmt::format("{} and D of a GEMM differ in type", operand.name));
  });
  for (const std::uint32_t extent : {op.m, op.n, op.k}) {
    if (extent <= static_cast<std::uint32_t>(std::numeric_limits<int>::max())) continue;
    throw base::Error(fmt::format("a matrix extent of {} is more than BLAS can take", extent));
  }
  using program::Gemm;
  const bool a_flips = op.transpose_a == program::Transpose::yes;
  const bool b_flips = op.transpose_b == program::Transpose::yes;
  GemmCall call{.type = at[&Gemm::d].type,
                .op = op,
                .row_stride_a = blas_stride(op.a, a_flips ? op.k : op.m, a_flips ? op.m : op.k),
                .row_stride_b = blas_stride(op.b, b_flips ? op.n : op.k, b_flips ? op.k : op.n),
                .row_stride_d = blas_stride(op.d, op.m, op.n),
                .a = at[&Gemm::a].data,
                .b = at[&Gemm::b].data,
                .d = at[&Gemm::d].data,
                .c_to_d = {}};
  if (op.beta != 0 && (at[&Gemm::c].data != call.d || !same_layout(op.c, op.d, op))) {
    call.c_to_d = strided_copy(
        resolver, {.rows = op.m, .columns = op.n, .batch = op.batch, .src = op.c, .dst = op.d});
  }
  return call;
}

/// Multiplies the matrices of a batch one after the other: OpenBLAS 0.3.21 has no batched GEMM, and
/// other libraries' batched GEMM has no advantage on a CPU.
void GemmCall::operator()(Player& /*player*/) const {
  if (c_to_d) run(*c_to_d);
  const std::size_t size = program::element_size(type);
  const CBLAS_TRANSPOSE how_a = blas(op.transpose_a), how_b = blas(op.transpose_b);
  const auto m = static_cast<int>(op.m), n = static_cast<int>(op.n), k = static_cast<int>(op.k);
  const std::byte *from_a = a, *from_b = b;
  std::byte* to = d;
  for (std::uint32_t i = 0; i < op.batch; ++i) {
    if (type == DType::f32) {
      cblas_sgemm(CblasRowMajor, how_a, how_b, m, n, k, static_cast<float>(op.alpha),
                  reinterpret_cast<const float*>(from_a), row_stride_a,
                  reinterpret_cast<const float*>(from_b), row_stride_b, static_cast<float>(op.beta),
                  reinterpret_cast<float*>(to), row_stride_d);
    } else {
      cblas_dgemm(CblasRowMajor, how_a, how_b, m, n, k, op.alpha,
                  reinterpret_cast<const double*>(from_a), row_stride_a,
                  reinterpret_cast<const double*>(from_b), row_stride_b, op.beta,
                  reinterpret_cast<double*>(to), row_stride_d);
    }
    from_a += op.a.batch_stride * size;
    from_b += op.b.batch_stride * size;
    to += op.d.batch_stride * size;
  }
}

void run(const StridedCopy& call) {
  for (std::size_t b = 0; b < call.batch; ++b) {
    const std::byte* src = call.src + b * call.src_batch;
    std::byte* dst = call.dst + b * call.dst_batch;
    for (std::size_t row = 0; row < call.rows; ++row) {
      std::memcpy(dst + row * call.dst_row, src + row * call.src_row, call.row_bytes);
    }
  }
}

void run(const Arguments<Add>& call) {
  if (call.type == DType::f64) return add<double>(call);
  if (call.type == DType::f32) return add<float>(call);
  if (!is_integer(call.type)) return;  // require_computed() has refused all other types
  with_word(call.type, [&]<class Word>(Word) { add<Word>(call); });
}

void run(const Arguments<Fill>& call) {
  if (call.type == DType::f64) return fill<double>(call);
  if (call.type == DType::f32) return fill<float>(call);
  const auto format = program::narrow_format(call.type);
  with_word(call.type, [&]<class Word>(Word) {
    format ? fill_narrow<Word>(call, *format) : fill<Word>(call);
  });
}

void run(const Arguments<Update>& call) {
  const OperandAt weight = call[&Update::weight], master = call[&Update::master];
  with_type_of(master.data != nullptr ? master : weight, [&]<class State>(State) {
    with_type_of(call[&Update::gradient], [&]<class Gradient>(Gradient) {
      with_type_of(weight, [&]<class Weight>(Weight) { update<State, Gradient, Weight>(call); });
    });
  });
}

void run(const Arguments<Checksum>& call) {
  if (call[&Checksum::flip].data != nullptr) flip(call);
  const Sum sum =
      with_word(call[&Checksum::src].type, [&]<class Word>(Word) { return sum_of<Word>(call); });
  std::memcpy(call[&Checksum::sum].data, &sum, sizeof sum);
}

}  // namespace isoscale::executor::host
