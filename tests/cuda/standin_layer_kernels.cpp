// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The kernels of norms, activations and softmax by plain loops, with their very roundings; sums may
// be taken in another order.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>

#include "executor/cuda/kernels/layer_kernels.hpp"
#include "tests/cuda/elements.hpp"
#include "tests/cuda/standin.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::ActivationKind;

bool is_supported(program::DType type) {
  return standin::with_floating(type, [](auto) { return true; }) && !standin::is_fp8(type);
}

/// The elements of a matrix, all matrices of a batch one after the other.
template <class Element>
class At {
 public:
  using Value = typename Element::Value;

  At(const MatrixAt& matrix, std::uint64_t rows) : matrix_(matrix), rows_(rows) {}
  [[nodiscard]] bool exists() const { return matrix_.data != nullptr; }
  [[nodiscard]] Value operator()(std::uint64_t row, std::uint64_t column) const {
    return Element::load(matrix_.data, index(row, column));
  }
  void set(std::uint64_t row, std::uint64_t column, Value value) const {
    Element::store(matrix_.data, index(row, column), value);
  }

 private:
  [[nodiscard]] std::uint64_t index(std::uint64_t row, std::uint64_t column) const {
    return row / rows_ * matrix_.batch_stride + row % rows_ * matrix_.row_stride + column;
  }

  MatrixAt matrix_;
  std::uint64_t rows_;
};

/// Throws standin::Fault unless the GPU reaches all of the matrices that exist.
template <class KernelCall>
void require_matrices(const KernelCall& call, std::initializer_list<MatrixAt> matrices) {
  std::uint64_t batch = 1;
  if constexpr (requires { call.batch; }) batch = call.batch;
  for (const MatrixAt& matrix : matrices) {
    if (matrix.data == nullptr) continue;
    const std::uint64_t last =
        (batch - 1) * matrix.batch_stride + (call.rows - 1) * matrix.row_stride + call.columns;
    standin::require_reachable(matrix.data, last * program::element_size(call.type));
  }
}

std::uint64_t inverse_bytes(program::DType type, std::uint64_t rows) {
  return rows * (type == program::DType::f64 ? sizeof(double) : sizeof(float));
}

template <class Element>
void run_typed(const NormCall& call) {
  using Value = typename Element::Value;
  const At<Element> x{call.x, call.rows}, addend{call.addend, call.rows};
  const At<Element> sum{call.sum, call.rows}, y{call.y, call.rows};
  for (std::uint64_t row = 0; row < call.rows; ++row) {
    if (sum.exists()) {
      for (std::uint64_t i = 0; i < call.columns; ++i) {
        sum.set(row, i, x(row, i) + addend(row, i));
      }
    }
    const At<Element>& s = sum.exists() ? sum : x;
    Value squares = 0;
    for (std::uint64_t i = 0; i < call.columns; ++i) squares += s(row, i) * s(row, i);
    const Value inverse = 1 / std::sqrt(squares / static_cast<Value>(call.columns) +
                                        static_cast<Value>(call.epsilon));
    static_cast<Value*>(call.inverse)[row] = inverse;
    for (std::uint64_t i = 0; i < call.columns; ++i) y.set(row, i, s(row, i) * inverse);
  }
}

void run(const NormCall& call) {
  require_matrices(call, {call.x, call.addend, call.sum, call.y});
  standin::require_reachable(call.inverse, inverse_bytes(call.type, call.rows));
  standin::with_floating(call.type, [&](auto element) {
    run_typed<decltype(element)>(call);
    return true;
  });
}

template <class Element>
void run_typed(const NormGradientCall& call) {
  using Value = typename Element::Value;
  const At<Element> dy{call.dy, call.rows}, s{call.s, call.rows};
  const At<Element> addend{call.addend, call.rows}, dx{call.dx, call.rows};
  for (std::uint64_t row = 0; row < call.rows; ++row) {
    const Value inverse = static_cast<const Value*>(call.inverse)[row];
    Value dot = 0;
    for (std::uint64_t i = 0; i < call.columns; ++i) dot += dy(row, i) * s(row, i);
    const Value factor = dot / static_cast<Value>(call.columns) * inverse * inverse;
    for (std::uint64_t i = 0; i < call.columns; ++i) {
      const Value gradient = inverse * (dy(row, i) - s(row, i) * factor);
      dx.set(row, i, addend.exists() ? gradient + addend(row, i) : gradient);
    }
  }
}

void run(const NormGradientCall& call) {
  require_matrices(call, {call.dy, call.s, call.addend, call.dx});
  standin::require_reachable(call.inverse, inverse_bytes(call.type, call.rows));
  standin::with_floating(call.type, [&](auto element) {
    run_typed<decltype(element)>(call);
    return true;
  });
}

template <class Value>
Value distribution(Value x) {
  return (1 + std::erf(x / std::numbers::sqrt2_v<Value>)) / 2;
}
template <class Value>
Value density(Value x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi_v<Value> / std::numbers::sqrt2_v<Value>;
}
template <class Value>
Value logistic(Value x) {
  return 1 / (1 + std::exp(-x));
}

void run(const ActivationCall& call) {
  require_matrices(call, {call.x, call.up, call.y});
  standin::with_floating(call.type, [&](auto element) {
    using Element = decltype(element);
    const At<Element> x{call.x, call.rows}, up{call.up, call.rows}, y{call.y, call.rows};
    for (std::uint64_t row = 0; row < call.rows; ++row) {
      for (std::uint64_t i = 0; i < call.columns; ++i) {
        const auto at = x(row, i);
        y.set(row, i,
              call.kind == ActivationKind::gelu ? at * distribution(at)
                                                : up(row, i) * at * logistic(at));
      }
    }
    return true;
  });
}

void run(const ActivationGradientCall& call) {
  require_matrices(call, {call.dy, call.x, call.up, call.dx, call.dup});
  standin::with_floating(call.type, [&](auto element) {
    using Element = decltype(element);
    const At<Element> dy{call.dy, call.rows}, x{call.x, call.rows}, up{call.up, call.rows};
    const At<Element> dx{call.dx, call.rows}, dup{call.dup, call.rows};
    for (std::uint64_t row = 0; row < call.rows; ++row) {
      for (std::uint64_t i = 0; i < call.columns; ++i) {
        const auto at = x(row, i), from = dy(row, i);
        if (call.kind == ActivationKind::gelu) {
          dx.set(row, i, from * (distribution(at) + at * density(at)));
          continue;
        }
        const auto gate = logistic(at), other = up(row, i);
        dx.set(row, i, from * other * gate * (1 + at * (1 - gate)));
        dup.set(row, i, from * at * gate);
      }
    }
    return true;
  });
}

template <class Element>
void run_typed(const SoftmaxCall& call) {
  using Value = typename Element::Value;
  const At<Element> x{call.x, call.rows}, y{call.y, call.rows};
  for (std::uint64_t row = 0; row < call.rows * call.batch; ++row) {
    Value most = x(row, 0), sum = 0;
    for (std::uint64_t i = 0; i < call.columns; ++i) most = std::max(most, x(row, i));
    for (std::uint64_t i = 0; i < call.columns; ++i) sum += std::exp(x(row, i) - most);
    for (std::uint64_t i = 0; i < call.columns; ++i) {
      y.set(row, i, std::exp(x(row, i) - most) / sum);
    }
  }
}

void run(const SoftmaxCall& call) {
  require_matrices(call, {call.x, call.y});
  standin::with_floating(call.type, [&](auto element) {
    run_typed<decltype(element)>(call);
    return true;
  });
}

template <class Element>
void run_typed(const SoftmaxGradientCall& call) {
  using Value = typename Element::Value;
  const At<Element> y{call.y, call.rows}, dy{call.dy, call.rows}, dx{call.dx, call.rows};
  for (std::uint64_t row = 0; row < call.rows * call.batch; ++row) {
    Value dot = 0;
    for (std::uint64_t i = 0; i < call.columns; ++i) dot += dy(row, i) * y(row, i);
    for (std::uint64_t i = 0; i < call.columns; ++i) {
      dx.set(row, i, y(row, i) * (dy(row, i) - dot));
    }
  }
}

void run(const SoftmaxGradientCall& call) {
  require_matrices(call, {call.y, call.dy, call.dx});
  standin::with_floating(call.type, [&](auto element) {
    run_typed<decltype(element)>(call);
    return true;
  });
}

template <class KernelCall>
cudaError_t start_any(const KernelCall& call, cudaStream_t stream) {
  if (call.rows == 0 || call.columns == 0) return cudaSuccess;
  if constexpr (requires { call.batch; }) {
    if (call.batch == 0) return cudaSuccess;
  }
  if (!has_kernel(call)) return cudaErrorNotSupported;
  standin::submit(stream, [call] { run(call); });
  return cudaGetLastError();  // finds the error of an earlier call that nobody has cleared
}

}  // namespace

bool has_kernel(const NormCall& call) { return is_supported(call.type); }
bool has_kernel(const NormGradientCall& call) { return is_supported(call.type); }
bool has_kernel(const ActivationCall& call) { return is_supported(call.type); }
bool has_kernel(const ActivationGradientCall& call) { return is_supported(call.type); }
bool has_kernel(const SoftmaxCall& call) { return is_supported(call.type); }
bool has_kernel(const SoftmaxGradientCall& call) { return is_supported(call.type); }

cudaError_t start(const NormCall& call, cudaStream_t stream) { return start_any(call, stream); }
cudaError_t start(const NormGradientCall& call, cudaStream_t stream) {
  return start_any(call, stream);
}
cudaError_t start(const ActivationCall& call, cudaStream_t stream) {
  return start_any(call, stream);
}
cudaError_t start(const ActivationGradientCall& call, cudaStream_t stream) {
  return start_any(call, stream);
}
cudaError_t start(const SoftmaxCall& call, cudaStream_t stream) { return start_any(call, stream); }
cudaError_t start(const SoftmaxGradientCall& call, cudaStream_t stream) {
  return start_any(call, stream);
}

}  // namespace isoscale::executor::cuda
