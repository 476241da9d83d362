// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/vector_access.cuh"

namespace isoscale::executor::cuda {
namespace {

/// Computes RMS norms: y = s / sqrt(mean(s^2) + epsilon) for each row s, which is x or, if there is
/// an addend, x + addend. It reads each row twice, the second time from cache.
template <class T>
__global__ void norm(Extents extents, In<T> x, In<T> addend, Out<T> sum, Out<T> y,
                     Compute<T>* inverses, Compute<T> epsilon) {
  using Value = Compute<T>;
  for_each_row(extents, [&](std::uint64_t row, std::uint64_t /*matrix*/) {
    Value squares = 0;
    const auto square = [&](const T& element) {
      const Value value = load(element);
      squares += value * value;
    };
    if (sum.exists()) {
      for_each_column(
          extents,
          [&](const T& a, const T& b, T& both) {
            both = rounded<T>(load(a) + load(b));
            square(both);
          },
          x.row(row), addend.row(row), sum.row(row));
    } else {
      for_each_column(extents, square, x.row(row));
    }
    squares = over_block(squares, Sum{});
    const Value inverse = 1 / sqrt(squares / static_cast<Value>(extents.columns) + epsilon);
    if (threadIdx.x == 0) inverses[row] = inverse;
    const In<T> s = sum.exists() ? sum.row(row).input() : x.row(row);
    for_each_column(
        extents, [=](const T& element, T& to) { to = rounded<T>(load(element) * inverse); }, s,
        y.row(row));
  });
}

template <class T>
__global__ void norm_gradient(Extents extents, In<T> dy, In<T> s, In<T> addend, Out<T> dx,
                              const Compute<T>* inverses) {
  using Value = Compute<T>;
  for_each_row(extents, [&](std::uint64_t row, std::uint64_t /*matrix*/) {
    const Value inverse = inverses[row];
    // dx is inverse * (dy - mean(dy * y) * y), plus the addend if there is one. Since y is
    // s * inverse, mean(dy * y) * y = mean(dy * s) * inverse^2 * s.
    Value dot = 0;
    for_each_column(
        extents, [&](const T& a, const T& b) { dot += load(a) * load(b); }, dy.row(row),
        s.row(row));
    dot = over_block(dot, Sum{});
    const Value factor = dot / static_cast<Value>(extents.columns) * inverse * inverse;
    const auto gradient = [=](const T& a, const T& b) {
      return inverse * (load(a) - load(b) * factor);
    };
    if (addend.exists()) {
      for_each_column(
          extents,
          [&](const T& a, const T& b, const T& more, T& to) {
            to = rounded<T>(gradient(a, b) + load(more));
          },
          dy.row(row), s.row(row), addend.row(row), dx.row(row));
    } else {
      for_each_column(
          extents, [&](const T& a, const T& b, T& to) { to = rounded<T>(gradient(a, b)); },
          dy.row(row), s.row(row), dx.row(row));
    }
  });
}

constexpr float log2_e = 1.44269504088896340736F;

/// Returns exp(x - most). In f32 this is 2^(x log2(e) - most log2(e)): one fused multiply-add and
/// an exp2f, which is cheaper than expf, since the second product is the same for a whole row.
__device__ double exponential(double x, double most) { return exp(x - most); }
__device__ float exponential(float x, float most) { return exp2f(fmaf(x, log2_e, -most * log2_e)); }

/// Computes softmax. It reads each row three times, the second and third time from cache. It
/// computes exponentials twice, which costs less than storing them.
template <class T>
__global__ void softmax(Extents extents, In<T> xs, Out<T> ys) {
  using Value = Compute<T>;
  for_each_row(extents, [&](std::uint64_t row, std::uint64_t matrix) {
    const In<T> x = xs.row(row, matrix);
    Value most = load(x.data[0]);
    for_each_column(
        extents, [&](const T& element) { most = Most{}(most, load(element)); }, x);
    most = over_block(most, Most{});
    Value sum = 0;
    for_each_column(
        extents, [&](const T& element) { sum += exponential(load(element), most); }, x);
    const Value inverse = 1 / over_block(sum, Sum{});
    for_each_column(
        extents,
        [=](const T& element, T& to) {
          to = rounded<T>(exponential(load(element), most) * inverse);
        },
        x, ys.row(row, matrix));
  });
}

template <class T>
__global__ void softmax_gradient(Extents extents, In<T> y, In<T> dy, Out<T> dx) {
  using Value = Compute<T>;
  for_each_row(extents, [&](std::uint64_t row, std::uint64_t matrix) {
    Value dot = 0;
    for_each_column(
        extents, [&](const T& a, const T& b) { dot += load(a) * load(b); }, dy.row(row, matrix),
        y.row(row, matrix));
    dot = over_block(dot, Sum{});
    for_each_column(
        extents, [=](const T& a, const T& b, T& to) { to = rounded<T>(load(b) * (load(a) - dot)); },
        dy.row(row, matrix), y.row(row, matrix), dx.row(row, matrix));
  });
}

using program::ActivationKind;

constexpr double inverse_sqrt_2 = 0.70710678118654752440,
                 inverse_sqrt_2_pi = 0.39894228040143267794;

/// The standard normal distribution at x: gelu(x) = x * P(Z <= x).
template <class Value>
struct Gaussian {
  Value distribution, density;
};
__device__ Gaussian<double> gaussian(double x) {
  return {(1 + erf(x * inverse_sqrt_2)) / 2, inverse_sqrt_2_pi * exp(-x * x / 2)};
}
/// In f32, P(Z > |x|) is the density times a polynomial (Abramowitz and Stegun, 26.2.17), which
/// needs no second exponential. With rounding, the absolute error is below 3e-7.
__device__ Gaussian<float> gaussian(float x) {
  const float t = __fdividef(1, fmaf(0.2316419F, fabsf(x), 1));
  const float density = static_cast<float>(inverse_sqrt_2_pi) * exp2f(x * x * (-log2_e / 2));
  float sum = 1.330274429F;
  for (const float c : {-1.821255978F, 1.781477937F, -0.356563782F, 0.319381530F}) {
    sum = fmaf(sum, t, c);
  }
  const float tail = density * (sum * t);
  return {x < 0 ? tail : 1 - tail, density};
}
/// Returns 1 / (1 + exp(-x)). For narrow element types T, fast functions are accurate enough.
template <class T>
__device__ Compute<T> logistic(Compute<T> x) {
  if constexpr (sizeof(T) < sizeof(float)) return __fdividef(1, 1 + __expf(-x));
  return 1 / (1 + exp(-x));
}

template <class T>
__global__ void gelu(Extents extents, In<T> x, Out<T> y) {
  for_each_element(
      extents,
      [](const T& element, T& result) {
        const Compute<T> at = load(element);
        result = rounded<T>(at * gaussian(at).distribution);
      },
      x, y);
}

template <class T>
__global__ void swiglu(Extents extents, In<T> x, In<T> up, Out<T> y) {
  for_each_element(
      extents,
      [](const T& element, const T& factor, T& result) {
        const Compute<T> at = load(element);
        result = rounded<T>(load(factor) * at * logistic<T>(at));
      },
      x, up, y);
}

template <class T>
__global__ void gelu_gradient(Extents extents, In<T> dy, In<T> x, Out<T> dx) {
  for_each_element(
      extents,
      [](const T& gradient, const T& element, T& result) {
        const Compute<T> at = load(element), from = load(gradient);
        const auto [distribution, density] = gaussian(at);
        result = rounded<T>(from * (distribution + at * density));
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
        const Compute<T> gate = logistic<T>(at);
        of_x = rounded<T>(from * other * gate * (1 + at * (1 - gate)));
        of_up = rounded<T>(from * at * gate);
      },
      dy, x, up, dx, dup);
}

}  // namespace

cudaError_t start(const Arguments<program::Norm>& call, cudaStream_t stream) {
  using Op = program::Norm;
  return start_typed(call, [&]<class T>(const Extents& extents, Type<T>) {
    start_rows(norm<T>, extents, stream, in<T>(call[&Op::x]), in<T>(call[&Op::addend]),
               out<T>(call[&Op::sum]), out<T>(call[&Op::y]),
               reinterpret_cast<Compute<T>*>(call[&Op::inverse].data),
               static_cast<Compute<T>>(call.op.epsilon));
  });
}

cudaError_t start(const Arguments<program::NormGradient>& call, cudaStream_t stream) {
  using Op = program::NormGradient;
  return start_typed(call, [&]<class T>(const Extents& extents, Type<T>) {
    start_rows(norm_gradient<T>, extents, stream, in<T>(call[&Op::dy]), in<T>(call[&Op::s]),
               in<T>(call[&Op::addend]), out<T>(call[&Op::dx]),
               reinterpret_cast<const Compute<T>*>(call[&Op::inverse].data));
  });
}

cudaError_t start(const Arguments<program::Softmax>& call, cudaStream_t stream) {
  using Op = program::Softmax;
  return start_typed(call, [&]<class T>(const Extents& extents, Type<T>) {
    start_rows(softmax<T>, extents, stream, in<T>(call[&Op::x]), out<T>(call[&Op::y]));
  });
}

cudaError_t start(const Arguments<program::SoftmaxGradient>& call, cudaStream_t stream) {
  using Op = program::SoftmaxGradient;
  return start_typed(call, [&]<class T>(const Extents& extents, Type<T>) {
    start_rows(softmax_gradient<T>, extents, stream, in<T>(call[&Op::y]), in<T>(call[&Op::dy]),
               out<T>(call[&Op::dx]));
  });
}

cudaError_t start(const Arguments<program::Activation>& call, cudaStream_t stream) {
  using Op = program::Activation;
  return start_typed(call, [&]<class T>(const Extents& extents, Type<T>) {
    const auto x = in<T>(call[&Op::x]);
    const auto y = out<T>(call[&Op::y]);
    if (call.op.kind == ActivationKind::gelu) {
      start_elements(gelu<T>, extents, stream, x, y);
    } else {
      start_elements(swiglu<T>, extents, stream, x, in<T>(call[&Op::up]), y);
    }
  });
}

cudaError_t start(const Arguments<program::ActivationGradient>& call, cudaStream_t stream) {
  using Op = program::ActivationGradient;
  return start_typed(call, [&]<class T>(const Extents& extents, Type<T>) {
    const auto dy = in<T>(call[&Op::dy]), x = in<T>(call[&Op::x]);
    const auto dx = out<T>(call[&Op::dx]);
    if (call.op.kind == ActivationKind::gelu) {
      start_elements(gelu_gradient<T>, extents, stream, dy, x, dx);
    } else {
      start_elements(swiglu_gradient<T>, extents, stream, dy, x, in<T>(call[&Op::up]), dx,
                     out<T>(call[&Op::dup]));
    }
  });
}

}  // namespace isoscale::executor::cuda
