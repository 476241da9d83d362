// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/element_kernels.hpp"
#include "executor/cuda/kernels/vectors.cuh"

namespace isoscale::executor::cuda {
namespace {

/// Updates w: the master copy if there is one, in which case the rounded weight is written too,
/// else the weight itself.
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

template <class State, class Gradient, class Weight>
void start_typed(const UpdateCall& call, cudaStream_t stream) {
  const auto state = [](void* data) { return InOut<State>{static_cast<State*>(data)}; };
  const bool has_master = call.master != nullptr;
  const auto w = state(has_master ? call.master : call.weight);
  const OptionalOut<Weight> weight{has_master ? static_cast<Weight*>(call.weight) : nullptr};
  const In<Gradient> gradient{static_cast<const Gradient*>(call.gradient)};
  const auto number = [](double value) { return static_cast<State>(value); };
  const Extents extents{1, call.count};
  if (call.optimizer == program::Optimizer::sgd) {
    start_elements(sgd<State, Gradient, Weight>, extents, stream, gradient, w, weight,
                   number(call.gradient_scale), number(call.rate));
    return;
  }
  auto* const powers = static_cast<State*>(call.powers);
  if (call.powers_mode == Powers::advance) {
    start_kernel(advance<State>, 1, 1, stream, powers, call.beta1, call.beta2);
  }
  const AdamFactors<State> factors{
      number(call.gradient_scale), number(call.rate),      number(call.beta1),  number(call.beta2),
      number(1 - call.beta1),      number(1 - call.beta2), number(call.epsilon)};
  start_elements(adam<State, Gradient, Weight>, extents, stream, gradient, w, state(call.moment1),
                 state(call.moment2), weight, powers, factors);
}

/// Calls use(state, gradient, weight) with the types of a call; returns false if no kernel has
/// them.
template <class Use>
bool with_types(const UpdateCall& call, const Use& use) {
  constexpr auto f64 = program::DType::f64;
  if (call.state == f64 && call.gradient_type == f64 && call.weight_type == f64) {
    return use(Type<double>{}, Type<double>{}, Type<double>{});
  }
  // With a state in f32, gradient and weight may be f32, f16 or bf16.
  if (call.state != program::DType::f32 || call.gradient_type == f64 || call.weight_type == f64) {
    return false;
  }
  return with_float(call.gradient_type, [&](auto gradient) {
    return with_float(call.weight_type,
                      [&](auto weight) { return use(Type<float>{}, gradient, weight); });
  });
}

}  // namespace

cudaError_t start(const UpdateCall& call, cudaStream_t stream) {
  if (call.count == 0) return cudaSuccess;
  return outcome(with_types(call, [&](auto state, auto gradient, auto weight) {
    start_typed<typename decltype(state)::type, typename decltype(gradient)::type,
                typename decltype(weight)::type>(call, stream);
    return true;
  }));
}

bool has_kernel(const UpdateCall& call) {
  return with_types(call, [](auto, auto, auto) { return true; });
}

}  // namespace isoscale::executor::cuda
