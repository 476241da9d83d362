// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The kernels by plain loops, with their very roundings.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "executor/cuda/kernels/element_kernels.hpp"
#include "tests/cuda/elements.hpp"
#include "tests/cuda/standin.hpp"

namespace isoscale::executor::cuda {
namespace {

using standin::require_reachable;
using standin::store_rounded;

std::uint64_t extent(std::uint64_t rows, std::uint64_t columns, std::uint64_t row) {
  return rows == 0 || columns == 0 ? 0 : (rows - 1) * row + columns;
}

/// Throws standin::Fault unless the GPU reaches all of a matrix.
void require_matrix(const void* base, program::DType type, std::uint64_t rows,
                    std::uint64_t columns, std::uint64_t row) {
  require_reachable(base, extent(rows, columns, row) * program::element_size(type));
}

template <class Value>
Value filled(const FillCall& call, std::uint64_t index) {
  if (call.source == program::FillSource::constant) return program::constant_as<Value>(call.value);
  if constexpr (!std::is_integral_v<Value>) {
    if (call.source == program::FillSource::normal) {
      return program::fill_normal<Value>(call.grid, index, call.scale);
    }
  }
  return program::fill_value<Value>(program::fill_integer(call.grid, index), call.scale);
}

void run(const FillCall& call) {
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < 3; ++d) last += (call.extents[d] - 1) * call.local[d];
  require_reachable(call.dst, (last + 1) * program::element_size(call.type));
  standin::with_number(call.type, [&](auto element) {
    using Element = decltype(element);
    using Value = typename Element::Value;
    for (std::uint64_t i = 0; i < call.extents[0]; ++i) {
      for (std::uint64_t j = 0; j < call.extents[1]; ++j) {
        for (std::uint64_t k = 0; k < call.extents[2]; ++k) {
          const std::uint64_t at = i * call.local[0] + j * call.local[1] + k * call.local[2];
          const std::uint64_t index =
              call.first + i * call.global[0] + j * call.global[1] + k * call.global[2];
          Element::store(call.dst, at, filled<Value>(call, index));
        }
      }
    }
    return true;
  });
}

void run(const AddCall& call) {
  require_matrix(call.a, call.type, call.rows, call.columns, call.a_row);
  require_matrix(call.b, call.type, call.rows, call.columns, call.b_row);
  require_matrix(call.dst, call.type, call.rows, call.columns, call.dst_row);
  standin::with_number(call.type, [&](auto element) {
    using Element = decltype(element);
    using Value = typename Element::Value;
    const auto scale = program::constant_as<Value>(call.scale);
    for (std::uint64_t row = 0; row < call.rows; ++row) {
      for (std::uint64_t i = 0; i < call.columns; ++i) {
        const Value a = Element::load(call.a, row * call.a_row + i);
        const Value b = Element::load(call.b, row * call.b_row + i);
        Element::store(call.dst, row * call.dst_row + i, static_cast<Value>(a + scale * b));
      }
    }
    return true;
  });
}

template <class From, class To>
void run_typed(const CastCall& call) {
  // A product by a power of two is exact in the wider of the two types; others are taken in f64.
  using Value = std::conditional_t<std::is_same_v<typename From::Value, double> ||
                                       std::is_same_v<typename To::Value, double>,
                                   double, float>;
  int exponent = 0;
  const bool is_exact = call.scaling == program::CastScale::amax ||
                        std::abs(std::frexp(call.scale, &exponent)) == 0.5;
  double scale = call.scale;
  if (call.scaling == program::CastScale::amax) {
    float largest = 0;
    for (std::uint64_t e = 0; e < call.rows * call.columns; ++e) {
      const auto value = std::abs(static_cast<float>(
          From::load(call.src, e / call.columns * call.src_row + e % call.columns)));
      if (!(value <= largest)) largest = value;  // NaN above all
    }
    scale = program::amax_scale(call.target, static_cast<double>(largest));
    *call.largest = std::bit_cast<unsigned int>(largest);
    *call.descale = 1 / static_cast<float>(scale);
  }
  for (std::uint64_t row = 0; row < call.rows; ++row) {
    for (std::uint64_t i = 0; i < call.columns; ++i) {
      const auto element = From::load(call.src, row * call.src_row + i);
      const double exact = static_cast<double>(element) * scale;
      const auto value =
          is_exact ? static_cast<double>(static_cast<Value>(element) * static_cast<Value>(scale))
                   : exact;
      if (call.dst != nullptr) store_rounded<To>(call.dst, row * call.dst_row + i, value);
      if (call.transposed == nullptr) continue;
      store_rounded<To>(call.transposed, i * call.transposed_row + row, value);
    }
  }
}

void run(const CastCall& call) {
  require_matrix(call.src, call.from, call.rows, call.columns, call.src_row);
  if (call.dst != nullptr) {
    require_matrix(call.dst, call.to, call.rows, call.columns, call.dst_row);
  }
  if (call.transposed != nullptr) {
    require_matrix(call.transposed, call.to, call.columns, call.rows, call.transposed_row);
  }
  if (call.scaling == program::CastScale::amax) {
    require_reachable(call.largest, sizeof *call.largest);
    require_reachable(call.descale, sizeof *call.descale);
  }
  standin::with_floating(call.from, [&](auto from) {
    return standin::with_floating(call.to, [&](auto to) {
      run_typed<decltype(from), decltype(to)>(call);
      return true;
    });
  });
}

template <class State, class Gradient, class Weight>
void run_typed(const UpdateCall& call) {
  const bool has_master = call.master != nullptr;
  auto* const w = static_cast<State*>(has_master ? call.master : call.weight);
  auto *const m = static_cast<State*>(call.moment1), *const v = static_cast<State*>(call.moment2);
  auto* const powers = static_cast<State*>(call.powers);
  const bool is_adam = call.optimizer == program::Optimizer::adam;
  const auto number = [](double value) { return static_cast<State>(value); };
  if (is_adam && call.powers_mode == Powers::advance) {
    powers[0] = number(static_cast<double>(powers[0]) * call.beta1);
    powers[1] = number(static_cast<double>(powers[1]) * call.beta2);
  }
  for (std::uint64_t i = 0; i < call.count; ++i) {
    const State g =
        static_cast<State>(Gradient::load(call.gradient, i)) * number(call.gradient_scale);
    State step = g;
    if (is_adam) {
      m[i] = number(call.beta1) * m[i] + number(1 - call.beta1) * g;
      v[i] = number(call.beta2) * v[i] + number(1 - call.beta2) * g * g;
      const State correction1 = number(1 - static_cast<double>(powers[0]));
      const State correction2 = number(1 - static_cast<double>(powers[1]));
      step = (m[i] / correction1) / (std::sqrt(v[i] / correction2) + number(call.epsilon));
    }
    w[i] -= number(call.rate) * step;
    if (has_master) Weight::store(call.weight, i, static_cast<typename Weight::Value>(w[i]));
  }
}

template <class Use>
bool with_types(const UpdateCall& call, const Use& use) {
  using program::DType;
  constexpr DType f64 = DType::f64;
  if (call.state == f64 && call.gradient_type == f64 && call.weight_type == f64) {
    return use(double{}, standin::Plain<double>{}, standin::Plain<double>{});
  }
  for (const DType type : {call.gradient_type, call.weight_type}) {
    if (type == f64 || standin::is_fp8(type)) return false;
  }
  return call.state == DType::f32 && standin::with_floating(call.gradient_type, [&](auto gradient) {
           return standin::with_floating(
               call.weight_type, [&](auto weight) { return use(float{}, gradient, weight); });
         });
}

void run(const UpdateCall& call) {
  const auto require = [&](const void* base, program::DType type, std::uint64_t count) {
    if (base != nullptr) require_reachable(base, count * program::element_size(type));
  };
  require(call.weight, call.weight_type, call.count);
  require(call.gradient, call.gradient_type, call.count);
  for (const void* state : {call.master, call.moment1, call.moment2}) {
    require(state, call.state, call.count);
  }
  require(call.powers, call.state, 2);
  with_types(call, [&](auto state, auto gradient, auto weight) {
    run_typed<decltype(state), decltype(gradient), decltype(weight)>(call);
    return true;
  });
}

void run(const CopyCall& call) {
  const StridedCopy& pieces = call.pieces;
  for (std::size_t b = 0; b < pieces.batch; ++b) {
    for (std::size_t row = 0; row < pieces.rows; ++row) {
      const std::byte* const src = pieces.src + b * pieces.src_batch + row * pieces.src_row;
      std::byte* const dst = pieces.dst + b * pieces.dst_batch + row * pieces.dst_row;
      require_reachable(src, pieces.row_bytes);
      require_reachable(dst, pieces.row_bytes);
      std::memcpy(dst, src, pieces.row_bytes);
    }
  }
}

template <class KernelCall>
cudaError_t start_any(const KernelCall& call, std::uint64_t elements, cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  if (!has_kernel(call)) return cudaErrorNotSupported;
  standin::submit(stream, [call] { run(call); });
  return cudaGetLastError();  // finds the error of an earlier call that nobody has cleared
}

bool is_floating(program::DType type) {
  return standin::with_floating(type, [](auto) { return true; });
}

}  // namespace

bool has_kernel(const FillCall& call) {
  return standin::with_number(call.type, [](auto) { return true; });
}
bool has_kernel(const AddCall& call) {
  return standin::with_number(call.type, [](auto) { return true; }) && !standin::is_fp8(call.type);
}
bool has_kernel(const CastCall& call) {
  return is_floating(call.from) && !standin::is_fp8(call.from) && is_floating(call.to);
}
bool has_kernel(const UpdateCall& call) {
  return with_types(call, [](auto, auto, auto) { return true; });
}

cudaError_t start(const FillCall& call, cudaStream_t stream) {
  return start_any(call, call.extents[0] * call.extents[1] * call.extents[2], stream);
}
cudaError_t start(const AddCall& call, cudaStream_t stream) {
  return start_any(call, call.rows * call.columns, stream);
}
cudaError_t start(const CastCall& call, cudaStream_t stream) {
  return start_any(call, call.rows * call.columns, stream);
}
cudaError_t start(const UpdateCall& call, cudaStream_t stream) {
  return start_any(call, call.count, stream);
}
cudaError_t start(const CopyCall& call, cudaStream_t stream) {
  standin::submit(stream, [call] { run(call); });
  return cudaGetLastError();  // finds the error of an earlier call that nobody has cleared
}

}  // namespace isoscale::executor::cuda
