// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cmath>

#include "executor/host/calls.hpp"

namespace isoscale::executor::host {
namespace {

/// How an updated w, computed in State, reaches memory: w itself, and the rounded weight beside a
/// master copy.
template <class State, class Weight>
struct Target {
  State* __restrict__ w;
  Weight* __restrict__ rounded;  ///< null when w is the weight

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

}  // namespace

void run(const UpdateCall& call) {
  call.state == Element::f32 ? update_state<float>(call) : update_state<double>(call);
}

}  // namespace isoscale::executor::host
