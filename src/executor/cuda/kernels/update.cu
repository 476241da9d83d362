// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/vectors.cuh"

namespace isoscale::executor::cuda {
namespace {

/// Updates w, which is the master copy if there is one, else the weight itself. If w is the master
/// copy, the rounded weight is written too.
template <class State, class Gradient, class Weight>
__global__ void sgd(Extents extents, In<Gradient> gradient, InOut<State> w,
                    OptionalOut<Weight> weight, State scale, State rate) {
  for_each_element(
      extents,
      [=](const Gradient& element, State& to, Weight& narrow) {
        const State g = static_cast<State>(load(element)) * scale;
        to = to - rate * g;
        narrow = rounded<Weight>(to);
      },
      gradient, w, weight);
}

template <class State>
__global__ void advance(State* powers, double beta1, double beta2) {
  powers[0] = static_cast<State>(static_cast<double>(powers[0]) * beta1);
  powers[1] = static_cast<State>(static_cast<double>(powers[1]) * beta2);
}

template <class State>
struct AdamFactors {
  State scale, rate, beta1, beta2, fresh1, fresh2, epsilon;
};

template <class State, class Gradient, class Weight>
__global__ void adam(Extents extents, In<Gradient> gradient, InOut<State> w, InOut<State> moment1,
                     InOut<State> moment2, OptionalOut<Weight> weight, const State* powers,
                     AdamFactors<State> f) {
  const auto correction1 = static_cast<State>(1 - static_cast<double>(powers[0]));
  const auto correction2 = static_cast<State>(1 - static_cast<double>(powers[1]));
  for_each_element(
      extents,
      [=](const Gradient& element, State& to, State& m, State& v, Weight& narrow) {
        const State g = static_cast<State>(load(element)) * f.scale;
        m = f.beta1 * m + f.fresh1 * g;
        v = f.beta2 * v + f.fresh2 * g * g;
        to = to - f.rate * ((m / correction1) / (sqrt(v / correction2) + f.epsilon));
        narrow = rounded<Weight>(to);
      },
      gradient, w, moment1, moment2, weight);
}

using Op = program::Update;

template <class State, class Gradient, class Weight>
void start_as(const Arguments<Op>& call, cudaStream_t stream) {
  const auto state = [](const OperandAt& at) {
    return InOut<State>{reinterpret_cast<State*>(at.data)};
  };
  const bool has_master = call[&Op::master].data != nullptr;
  const auto w = state(call[has_master ? &Op::master : &Op::weight]);
  auto* const narrow = reinterpret_cast<Weight*>(call[&Op::weight].data);
  const OptionalOut<Weight> weight{has_master ? narrow : nullptr};
  const In<Gradient> gradient{reinterpret_cast<const Gradient*>(call[&Op::gradient].data)};
  const auto number = [](double value) { return static_cast<State>(value); };
  const Op& op = call.op;
  const Extents extents{1, op.weight.count};
  if (op.optimizer == program::Optimizer::sgd) {
    start_elements(sgd<State, Gradient, Weight>, extents, stream, gradient, w, weight,
                   number(op.gradient_scale), number(op.rate));
    return;
  }
  auto* const powers = reinterpret_cast<State*>(call[&Op::powers].data);
  if (call.powers == Powers::advance) {
    start_kernel(advance<State>, 1, 1, stream, powers, op.beta1, op.beta2);
  }
  const AdamFactors<State> factors{
      number(op.gradient_scale), number(op.rate),      number(op.beta1),  number(op.beta2),
      number(1 - op.beta1),      number(1 - op.beta2), number(op.epsilon)};
  start_elements(adam<State, Gradient, Weight>, extents, stream, gradient, w,
                 state(call[&Op::moment1]), state(call[&Op::moment2]), weight, powers, factors);
}

}  // namespace

cudaError_t start(const Arguments<Op>& call, cudaStream_t stream) {
  if (call.op.weight.count == 0) return cudaSuccess;
  if (!has_kernel(call)) return cudaErrorNotSupported;
  const program::DType gradient_type = call[&Op::gradient].type;
  if (gradient_type == program::DType::f64) {
    start_as<double, double, double>(call, stream);
    return cudaGetLastError();
  }
  return outcome(with_float(gradient_type, [&](auto gradient) {
    return with_float(call[&Op::weight].type, [&](auto weight) {
      using Gradient = typename decltype(gradient)::type;
      using Weight = typename decltype(weight)::type;
      if constexpr (!std::is_same_v<Gradient, double> && !std::is_same_v<Weight, double>) {
        start_as<float, Gradient, Weight>(call, stream);
        return true;
      } else {
        return false;
      }
    });
  }));
}

}  // namespace isoscale::executor::cuda
