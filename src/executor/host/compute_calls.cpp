// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/compute_calls.hpp"

#include <cblas.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "program/fill_and_checksum.hpp"
#include "program/low_precision.hpp"

namespace isoscale::executor::host {
namespace {

CBLAS_TRANSPOSE blas(program::Transpose transpose) {
  return transpose == program::Transpose::yes ? CblasTrans : CblasNoTrans;
}

void multiply(const GemmCall& g, const float* a, const float* b, float* d) {
  cblas_sgemm(CblasRowMajor, blas(g.transpose_a), blas(g.transpose_b), g.m, g.n, g.k,
              static_cast<float>(g.alpha), a, g.row_stride_a, b, g.row_stride_b,
              static_cast<float>(g.beta), d, g.row_stride_d);
}

void multiply(const GemmCall& g, const double* a, const double* b, double* d) {
  cblas_dgemm(CblasRowMajor, blas(g.transpose_a), blas(g.transpose_b), g.m, g.n, g.k, g.alpha, a,
              g.row_stride_a, b, g.row_stride_b, g.beta, d, g.row_stride_d);
}

/// Multiplies one matrix after the other: OpenBLAS 0.3.21 has no batched GEMM, and on a CPU those
/// of other libraries do the same.
template <class T>
void multiply_batch(const GemmCall& g) {
  const auto* a = reinterpret_cast<const T*>(g.a);
  const auto* b = reinterpret_cast<const T*>(g.b);
  auto* d = reinterpret_cast<T*>(g.d);
  for (std::uint32_t i = 0; i < g.batch; ++i) {
    multiply(g, a, b, d);
    a += g.batch_stride_a;
    b += g.batch_stride_b;
    d += g.batch_stride_d;
  }
}

// Long rows are bound by memory, so these loops read and write each element once. Integers are
// added as unsigned ones, whose sums wrap.

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

/// dst may be either operand, or both; each case has a loop of its own, so that the compiler can
/// vectorise it.
template <class T>
void add(const AddCall& call) {
  const auto* a = reinterpret_cast<const T*>(call.a);
  const auto* b = reinterpret_cast<const T*>(call.b);
  auto* dst = reinterpret_cast<T*>(call.dst);
  const auto scale = program::constant_as<T>(call.scale);
  for (std::size_t row = 0; row < call.rows; ++row) {
    if (dst == a && dst == b) {
      add_onto_both(dst, call.columns, scale);
    } else if (dst == a) {
      add_onto_a(b, dst, call.columns, scale);
    } else if (dst == b) {
      add_onto_b(a, dst, call.columns, scale);
    } else {
      add_row(a, b, dst, call.columns, scale);
    }
    a += call.a_row;
    b += call.b_row;
    dst += call.dst_row;
  }
}

/// Writes value_of(global index) to each element of the shard.
template <class T, class ValueOf>
void fill_shard(const FillCall& call, const ValueOf& value_of) {
  auto* dst = reinterpret_cast<T*>(call.dst);
  for (std::uint64_t i = 0; i < call.extents[0]; ++i) {
    for (std::uint64_t j = 0; j < call.extents[1]; ++j) {
      std::uint64_t local = i * call.local[0] + j * call.local[1];
      std::uint64_t index = call.first + i * call.global[0] + j * call.global[1];
      for (std::uint64_t k = 0; k < call.extents[2]; ++k) {
        dst[local] = value_of(index);
        local += call.local[2];
        index += call.global[2];
      }
    }
  }
}

template <class T>
void fill(const FillCall& call) {
  if (call.source == program::FillSource::constant) {
    const T value = program::constant_as<T>(call.value);
    return fill_shard<T>(call, [value](std::uint64_t /*index*/) { return value; });
  }
  if constexpr (!std::is_integral_v<T>) {
    if (call.source == program::FillSource::normal) {
      return fill_shard<T>(call, [&](std::uint64_t index) {
        return program::fill_normal<T>(call.grid, index, call.scale);
      });
    }
  }
  fill_shard<T>(call, [&](std::uint64_t index) {
    return program::fill_value<T>(program::fill_integer(call.grid, index), call.scale);
  });
}

/// Writes random values in a narrow type, each rounded once: f32 holds them exactly before that.
/// There are at most 255 values, so each is encoded only once.
template <class Code>
void fill_narrow(const FillCall& call, const program::NarrowFormat& format) {
  const auto code = [&](double value) { return static_cast<Code>(program::encode(format, value)); };
  if (call.source == program::FillSource::constant) {
    return fill_shard<Code>(call,
                            [value = code(call.value)](std::uint64_t /*index*/) { return value; });
  }
  if (call.source == program::FillSource::normal) {
    return fill_shard<Code>(call, [&](std::uint64_t index) {
      return code(static_cast<double>(program::fill_normal<float>(call.grid, index, call.scale)));
    });
  }
  std::array<Code, 255> codes{};
  const int range = call.grid.range;
  const auto code_of = [&](int integer) -> Code& {
    const int place = integer + range;
    return codes[static_cast<std::size_t>(place)];
  };
  for (int i = -range; i <= range; ++i) {
    code_of(i) = code(program::fill_value<double>(i, call.scale));
  }
  fill_shard<Code>(
      call, [&](std::uint64_t index) { return code_of(program::fill_integer(call.grid, index)); });
}

/// The destination of an updated w, which was computed in State: w itself and, if w is a master
/// copy, the rounded weight.
template <class State, class Weight>
struct Target {
  State* __restrict__ w;
  Weight* __restrict__ rounded;  ///< null if w is the weight

  void store(std::size_t i, State value) const {
    w[i] = value;
    if (rounded != nullptr) rounded[i] = static_cast<Weight>(value);
  }
};

template <class State, class Gradient, class Weight>
void sgd(const UpdateCall& call, Target<State, Weight> target) {
  const auto* __restrict__ gradient = reinterpret_cast<const Gradient*>(call.gradient);
  const auto scale = static_cast<State>(call.gradient_scale);
  const auto rate = static_cast<State>(call.rate);
  for (std::size_t i = 0; i < call.count; ++i) {
    const State g = static_cast<State>(gradient[i]) * scale;
    target.store(i, target.w[i] - rate * g);
  }
}

struct BiasCorrection {
  double first, second;  ///< 1 - beta1^t, 1 - beta2^t
};

template <class T>
BiasCorrection advance(const UpdateCall& call) {
  auto* powers = reinterpret_cast<T*>(call.powers);
  if (call.powers_mode == Powers::advance) {
    powers[0] = static_cast<T>(static_cast<double>(powers[0]) * call.beta1);
    powers[1] = static_cast<T>(static_cast<double>(powers[1]) * call.beta2);
  }
  return {.first = 1 - static_cast<double>(powers[0]),
          .second = 1 - static_cast<double>(powers[1])};
}

template <class State, class Gradient, class Weight>
void adam(const UpdateCall& call, Target<State, Weight> target) {
  const BiasCorrection correction =
      call.powers_type == Element::f32 ? advance<float>(call) : advance<double>(call);
  const auto* __restrict__ gradient = reinterpret_cast<const Gradient*>(call.gradient);
  auto* __restrict__ moment1 = reinterpret_cast<State*>(call.moment1);
  auto* __restrict__ moment2 = reinterpret_cast<State*>(call.moment2);
  const auto scale = static_cast<State>(call.gradient_scale);
  const auto rate = static_cast<State>(call.rate);
  const auto beta1 = static_cast<State>(call.beta1);
  const auto beta2 = static_cast<State>(call.beta2);
  const auto fresh1 = static_cast<State>(1 - call.beta1);
  const auto fresh2 = static_cast<State>(1 - call.beta2);
  const auto epsilon = static_cast<State>(call.epsilon);
  const auto correction1 = static_cast<State>(correction.first);
  const auto correction2 = static_cast<State>(correction.second);
  for (std::size_t i = 0; i < call.count; ++i) {
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
void update(const UpdateCall& call) {
  const bool has_master = call.master != nullptr;
  const Target<State, Weight> target{
      .w = reinterpret_cast<State*>(has_master ? call.master : call.weight),
      .rounded = has_master ? reinterpret_cast<Weight*>(call.weight) : nullptr};
  if (call.optimizer == program::Optimizer::sgd) {
    sgd<State, Gradient>(call, target);
  } else {
    adam<State, Gradient>(call, target);
  }
}

template <class State, class Gradient>
void update_weight(const UpdateCall& call) {
  call.weight_type == Element::f32 ? update<State, Gradient, float>(call)
                                   : update<State, Gradient, double>(call);
}

template <class State>
void update_state(const UpdateCall& call) {
  call.gradient_type == Element::f32 ? update_weight<State, float>(call)
                                     : update_weight<State, double>(call);
}

struct Sum {
  std::uint64_t sum = 0, not_finite = 0;
};

/// Returns the checksum of a matrix; `Word` is an unsigned integer of the size of an element.
template <class Word>
Sum sum_of(const StoredMatrix& src) {
  const std::uint64_t mask = program::exponent_mask(src.type);
  Sum result;
  std::uint64_t index = 0;
  for (std::size_t b = 0; b < src.batch; ++b) {
    for (std::size_t row = 0; row < src.rows; ++row) {
      const std::byte* at = src.data + (b * src.batch_stride + row * src.row_stride) * sizeof(Word);
      for (std::size_t column = 0; column < src.columns; ++column, at += sizeof(Word)) {
        Word bits = 0;
        std::memcpy(&bits, at, sizeof bits);
        result.sum += program::checksum_term(bits, index++);
        result.not_finite += program::is_finite(bits, mask) ? 0 : 1;
      }
    }
  }
  return result;
}

Sum sum_of_elements(const StoredMatrix& src) {
  switch (program::element_size(src.type)) {
    case 8:
      return sum_of<std::uint64_t>(src);
    case 4:
      return sum_of<std::uint32_t>(src);
    case 2:
      return sum_of<std::uint16_t>(src);
    default:
      return sum_of<std::uint8_t>(src);
  }
}

void flip(const ChecksumCall& call) {
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), call.flip, sizeof words);
  const auto [element, mask] = words;
  const StoredMatrix& src = call.src;
  if (mask == 0 || element >= src.batch * src.rows * src.columns) return;
  const std::uint64_t row = element / src.columns;
  const std::uint64_t at =
      row / src.rows * src.batch_stride + row % src.rows * src.row_stride + element % src.columns;
  const std::size_t size = program::element_size(src.type);
  std::uint64_t bits = 0;  // all supported machines are little-endian
  std::memcpy(&bits, src.data + at * size, size);
  bits ^= mask;
  std::memcpy(src.data + at * size, &bits, size);
}

}  // namespace

void run(const GemmCall& call) {
  if (call.c_to_d) run(*call.c_to_d);
  if (call.element == Element::f32) {
    multiply_batch<float>(call);
  } else {
    multiply_batch<double>(call);
  }
}

void run(const CopyCall& call) {
  for (std::size_t b = 0; b < call.batch; ++b) {
    const std::byte* src = call.src + b * call.src_batch;
    std::byte* dst = call.dst + b * call.dst_batch;
    for (std::size_t row = 0; row < call.rows; ++row) {
      std::memcpy(dst + row * call.dst_row, src + row * call.src_row, call.row_bytes);
    }
  }
}

void run(const AddCall& call) {
  using program::DType;
  switch (call.type) {
    case DType::f64:
      return add<double>(call);
    case DType::f32:
      return add<float>(call);
    case DType::i64:
      return add<std::uint64_t>(call);
    case DType::i32:
      return add<std::uint32_t>(call);
    case DType::i8:
    case DType::u8:
      return add<std::uint8_t>(call);
    case DType::f16:
    case DType::bf16:
    case DType::e4m3:
    case DType::e5m2:
      return;  // prepare_op() refuses these
  }
}

void run(const FillCall& call) {
  using program::DType;
  switch (call.type) {
    case DType::f64:
      return fill<double>(call);
    case DType::f32:
      return fill<float>(call);
    case DType::f16:
    case DType::bf16:
      return fill_narrow<std::uint16_t>(call, *program::narrow_format(call.type));
    case DType::e4m3:
    case DType::e5m2:
      return fill_narrow<std::uint8_t>(call, *program::narrow_format(call.type));
    case DType::i64:
      return fill<std::int64_t>(call);
    case DType::i32:
      return fill<std::int32_t>(call);
    case DType::i8:
      return fill<std::int8_t>(call);
    case DType::u8:
      return fill<std::uint8_t>(call);
  }
}

void run(const UpdateCall& call) {
  call.state == Element::f32 ? update_state<float>(call) : update_state<double>(call);
}

void run(const ChecksumCall& call) {
  if (call.flip != nullptr) flip(call);
  const Sum sum = sum_of_elements(call.src);
  std::memcpy(call.sum, &sum, sizeof sum);
}

void run(const ClearCall& call) {
  const bool is_dense = call.row_stride == call.row_bytes;
  const std::size_t rows = is_dense ? std::min<std::size_t>(call.rows, 1) : call.rows;
  const std::size_t bytes = is_dense ? call.rows * call.row_bytes : call.row_bytes;
  for (std::size_t b = 0; b < call.batch; ++b) {
    for (std::size_t row = 0; row < rows; ++row) {
      std::memset(call.d + b * call.batch_stride + row * call.row_stride, 0, bytes);
    }
  }
}

}  // namespace isoscale::executor::host
