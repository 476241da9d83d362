// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/kernels/elements.cuh"
#include "executor/cuda/kernels/kernels.hpp"

namespace isoscale::executor::cuda {
namespace {

/// How an updated w, computed in State, reaches memory: w itself, and the rounded weight beside a
/// master copy.
template <class State, class Weight>
struct Target {
  State* w;
  Weight* rounded_weight;  ///< null when w is the weight

  __device__ void store(std::uint64_t i, State value) const {
    w[i] = value;
    if (rounded_weight != nullptr) rounded_weight[i] = rounded<Weight>(value);
  }
};

template <class State, class Gradient, class Weight>
__global__ void sgd(Target<State, Weight> target, const Gradient* gradient, std::uint64_t count,
                    State scale, State rate) {
  for (std::uint64_t i = first_element(); i < count; i += element_step()) {
    const State g = static_cast<State>(load(gradient[i])) * scale;
    target.store(i, target.w[i] - rate * g);
  }
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
__global__ void adam(Target<State, Weight> target, const Gradient* gradient, State* moment1,
                     State* moment2, const State* powers, std::uint64_t count,
                     AdamFactors<State> f) {
  const auto correction1 = static_cast<State>(1 - static_cast<double>(powers[0]));
  const auto correction2 = static_cast<State>(1 - static_cast<double>(powers[1]));
  for (std::uint64_t i = first_element(); i < count; i += element_step()) {
    const State g = static_cast<State>(load(gradient[i])) * f.scale;
    const State m = f.beta1 * moment1[i] + f.fresh1 * g;
    const State v = f.beta2 * moment2[i] + f.fresh2 * g * g;
    moment1[i] = m;
    moment2[i] = v;
    const State step = (m / correction1) / (sqrt(v / correction2) + f.epsilon);
    target.store(i, target.w[i] - f.rate * step);
  }
}

template <class State, class Gradient, class Weight>
void start_typed(const UpdateCall& call, cudaStream_t stream) {
  const bool has_master = call.master != nullptr;
  const Target<State, Weight> target{static_cast<State*>(has_master ? call.master : call.weight),
                                     has_master ? static_cast<Weight*>(call.weight) : nullptr};
  const auto* const gradient = static_cast<const Gradient*>(call.gradient);
  const auto number = [](double value) { return static_cast<State>(value); };
  const unsigned blocks = blocks_for(call.count);
  if (call.optimizer == program::Optimizer::sgd) {
    start_kernel(sgd<State, Gradient, Weight>, blocks, block_threads, stream, target, gradient,
                 call.count, number(call.gradient_scale), number(call.rate));
    return;
  }
  auto* const powers = static_cast<State*>(call.powers);
  if (call.powers_mode == Powers::advance) {
    start_kernel(advance<State>, 1, 1, stream, powers, call.beta1, call.beta2);
  }
  const AdamFactors<State> factors{
      number(call.gradient_scale), number(call.rate),      number(call.beta1),  number(call.beta2),
      number(1 - call.beta1),      number(1 - call.beta2), number(call.epsilon)};
  start_kernel(adam<State, Gradient, Weight>, blocks, block_threads, stream, target, gradient,
               static_cast<State*>(call.moment1), static_cast<State*>(call.moment2), powers,
               call.count, factors);
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
    start_typed<typename decltype(state)::type, typename decltype(gradient)::type,
                typename decltype(weight)::type>(call, stream);
    return true;
  }));
}

bool has_kernel(const UpdateCall& call) {
  return with_types(call, [](auto, auto, auto) { return true; });
}

}  // namespace isoscale::executor::cuda
