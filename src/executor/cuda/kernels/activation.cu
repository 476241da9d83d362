// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/rows.cuh"

namespace isoscale::executor::cuda {
namespace {

using program::ActivationKind;

constexpr double inverse_sqrt_2 = 0.70710678118654752440,
                 inverse_sqrt_2_pi = 0.39894228040143267794;

/// The normal distribution: gelu(x) = x * distribution(x).
template <class Value>
__device__ Value distribution(Value x) {
  return (1 + erf(x * static_cast<Value>(inverse_sqrt_2))) / 2;
}
template <class Value>
__device__ Value density(Value x) {
  return static_cast<Value>(inverse_sqrt_2_pi) * exp(-x * x / 2);
}
template <class Value>
__device__ Value logistic(Value x) {
  return 1 / (1 + exp(-x));
}

template <class T>
__global__ void gelu(Extents extents, In<T> x, Out<T> y) {
  for_each_element(
      extents,
      [](const T& element, T& result) {
        const Compute<T> at = load(element);
        result = rounded<T>(at * distribution(at));
      },
      x, y);
}

template <class T>
__global__ void swiglu(Extents extents, In<T> x, In<T> up, Out<T> y) {
  for_each_element(
      extents,
      [](const T& element, const T& factor, T& result) {
        const Compute<T> at = load(element);
        result = rounded<T>(load(factor) * at * logistic(at));
      },
      x, up, y);
}

template <class T>
__global__ void gelu_gradient(Extents extents, In<T> dy, In<T> x, Out<T> dx) {
  for_each_element(
      extents,
      [](const T& gradient, const T& element, T& result) {
        const Compute<T> at = load(element), from = load(gradient);
        result = rounded<T>(from * (distribution(at) + at * density(at)));
      },
      dy, x, dx);
}

template <class T>
__global__ void swiglu_gradient(Extents extents, In<T> dy, In<T> x, In<T> up, Out<T> dx,
                                Out<T> dup) {
  for_each_element(
      extents,
      [](const T& gradient, const T& element, const T& factor, T& of_x, T& of_up) {
        const Compute<T> at = load(element), from = load(gradient), other = load(factor);
        const Compute<T> gate = logistic(at);
        of_x = rounded<T>(from * other * gate * (1 + at * (1 - gate)));
        of_up = rounded<T>(from * at * gate);
      },
      dy, x, up, dx, dup);
}

}  // namespace

cudaError_t start(const ActivationCall& call, cudaStream_t stream) {
  if (call.rows * call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    const Extents extents{call.rows, call.columns};
    const auto x = in<T>(call.x);
    const auto y = out<T>(call.y);
    if (call.kind == ActivationKind::gelu) {
      start_elements(gelu<T>, extents, stream, x, y);
    } else {
      start_elements(swiglu<T>, extents, stream, x, in<T>(call.up), y);
    }
    return true;
  }));
}

cudaError_t start(const ActivationGradientCall& call, cudaStream_t stream) {
  if (call.rows * call.columns == 0) return cudaSuccess;
  return outcome(with_float(call.type, [&](auto type) {
    using T = typename decltype(type)::type;
    const Extents extents{call.rows, call.columns};
    const auto dy = in<T>(call.dy), x = in<T>(call.x);
    const auto dx = out<T>(call.dx);
    if (call.kind == ActivationKind::gelu) {
      start_elements(gelu_gradient<T>, extents, stream, dy, x, dx);
    } else {
      start_elements(swiglu_gradient<T>, extents, stream, dy, x, in<T>(call.up), dx,
                     out<T>(call.dup));
    }
    return true;
  }));
}

bool has_kernel(const ActivationCall& call) {
  return with_float(call.type, [](auto) { return true; });
}
bool has_kernel(const ActivationGradientCall& call) {
  return with_float(call.type, [](auto) { return true; });
}

}  // namespace isoscale::executor::cuda
