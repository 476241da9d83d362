// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <type_traits>

#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/vectors.cuh"

namespace isoscale::executor::cuda {
namespace {

/// The rounded weight stands beside a master copy, w; without one w is the weight.
enum class Master : bool { no, yes };

/// Calls step(gradient, w, moments ..., rounded weight if there is a master) for each element.
template <Master master, class Step, class Weight, class... O>
__device__ void update_each(const Extents& extents, const Step& step, Out<Weight> weight,
                            const O&... operands) {
  if constexpr (master == Master::yes) {
    for_each_element(extents, step, operands..., weight);
  } else {
    for_each_element(extents, step, operands...);
  }
}

template <Master master, class State, class Gradient, class Weight>
__global__ void sgd(Extents extents, In<Gradient> gradient, InOut<State> w, Out<Weight> weight,
                    State scale, State rate) {
  const auto step = [=](const Gradient& element, State& to, auto&... narrow) {
    const State g = static_cast<State>(load(element)) * scale;
    to = to - rate * g;
    ((narrow = rounded<Weight>(to)), ...);
  };
  update_each<master>(extents, step, weight, gradient, w);
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

template <Master master, class State, class Gradient, class Weight>
__global__ void adam(Extents extents, In<Gradient> gradient, InOut<State> w, InOut<State> moment1,
                     InOut<State> moment2, Out<Weight> weight, const State* powers,
                     AdamFactors<State> f) {
  const auto correction1 = static_cast<State>(1 - static_cast<double>(powers[0]));
  const auto correction2 = static_cast<State>(1 - static_cast<double>(powers[1]));
  const auto step = [=](const Gradient& element, State& to, State& m, State& v, auto&... narrow) {
    const State g = static_cast<State>(load(element)) * f.scale;
    m = f.beta1 * m + f.fresh1 * g;
    v = f.beta2 * v + f.fresh2 * g * g;
    to = to - f.rate * ((m / correction1) / (sqrt(v / correction2) + f.epsilon));
    ((narrow = rounded<Weight>(to)), ...);
  };
  update_each<master>(extents, step, weight, gradient, w, moment1, moment2);
}

template <Master master, class State, class Gradient, class Weight>
void start_typed(const UpdateCall& call, cudaStream_t stream) {
  const auto state = [&](void* data) {
    return InOut<State>{static_cast<State*>(data), call.count};
  };
  const auto w = state(master == Master::yes ? call.master : call.weight);
  const Out<Weight> weight{static_cast<Weight*>(call.weight), call.count};
  const In<Gradient> gradient{static_cast<const Gradient*>(call.gradient), call.count};
  const auto number = [](double value) { return static_cast<State>(value); };
  const Extents extents{1, call.count};
  if (call.optimizer == program::Optimizer::sgd) {
    start_elements(sgd<master, State, Gradient, Weight>, extents, stream, gradient, w, weight,
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
  start_elements(adam<master, State, Gradient, Weight>, extents, stream, gradient, w,
                 state(call.moment1), state(call.moment2), weight, powers, factors);
}

/// Calls use(state, gradient, weight) with the types of a call; false when no kernel has them.
template <class Use>
bool with_types(const UpdateCall& call, const Use& use) {
  constexpr auto f64 = program::DType::f64;
  if (call.state == f64 && call.gradient_type == f64 && call.weight_type == f64) {
    return use(Type<double>{}, Type<double>{}, Type<double>{});
  }
  // f32, f16 and bf16 may stand beside an f32 state.
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
    using State = typename decltype(state)::type;
    using Gradient = typename decltype(gradient)::type;
    using Weight = typename decltype(weight)::type;
    if (call.master != nullptr) {
      start_typed<Master::yes, State, Gradient, Weight>(call, stream);
    } else if constexpr (std::is_same_v<State, Weight>) {
      start_typed<Master::no, State, Gradient, Weight>(call, stream);
    } else {
      return false;
    }
    return true;
  }));
}

bool has_kernel(const UpdateCall& call) {
  return with_types(call, [](auto, auto, auto) { return true; });
}

}  // namespace isoscale::executor::cuda
