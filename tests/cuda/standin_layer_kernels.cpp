// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The kernels of norms, activations, softmax, updates and checksums by plain loops of their own,
// with their very roundings; sums may be taken in another order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "executor/cuda/kernels/kernels.hpp"
#include "program/fill_and_checksum.hpp"
#include "tests/cuda/elements.hpp"
#include "tests/cuda/standin_starts.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::Activation;
using program::ActivationGradient;
using program::Checksum;
using program::Norm;
using program::NormGradient;
using program::Softmax;
using program::SoftmaxGradient;
using program::Update;

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

/// Returns the elements of a matrix of an op.
template <class Element, class Op>
At<Element> at(const Arguments<Op>& call, program::Matrix Op::*member) {
  return {call[member], call.op.rows};
}

template <class Element>
void play(const Arguments<Norm>& call) {
  using Value = typename Element::Value;
  const auto x = at<Element>(call, &Norm::x), addend = at<Element>(call, &Norm::addend);
  const auto sum = at<Element>(call, &Norm::sum), y = at<Element>(call, &Norm::y);
  const std::uint64_t columns = call.op.columns;
  for (std::uint64_t row = 0; row < call.op.rows; ++row) {
    if (sum.exists()) {
      for (std::uint64_t i = 0; i < columns; ++i) sum.set(row, i, x(row, i) + addend(row, i));
    }
    const At<Element>& s = sum.exists() ? sum : x;
    Value squares = 0;
    for (std::uint64_t i = 0; i < columns; ++i) squares += s(row, i) * s(row, i);
    const Value inverse =
        1 / std::sqrt(squares / static_cast<Value>(columns) + static_cast<Value>(call.op.epsilon));
    reinterpret_cast<Value*>(call[&Norm::inverse].data)[row] = inverse;
    for (std::uint64_t i = 0; i < columns; ++i) y.set(row, i, s(row, i) * inverse);
  }
}

template <class Element>
void play(const Arguments<NormGradient>& call) {
  using Op = NormGradient;
  using Value = typename Element::Value;
  const auto dy = at<Element>(call, &Op::dy), s = at<Element>(call, &Op::s);
  const auto addend = at<Element>(call, &Op::addend), dx = at<Element>(call, &Op::dx);
  const std::uint64_t columns = call.op.columns;
  for (std::uint64_t row = 0; row < call.op.rows; ++row) {
    const Value inverse = reinterpret_cast<const Value*>(call[&Op::inverse].data)[row];
    Value dot = 0;
    for (std::uint64_t i = 0; i < columns; ++i) dot += dy(row, i) * s(row, i);
    const Value factor = dot / static_cast<Value>(columns) * inverse * inverse;
    for (std::uint64_t i = 0; i < columns; ++i) {
      const Value gradient = inverse * (dy(row, i) - s(row, i) * factor);
      dx.set(row, i, addend.exists() ? gradient + addend(row, i) : gradient);
    }
  }
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

template <class Element>
void play(const Arguments<Activation>& call) {
  const auto x = at<Element>(call, &Activation::x), up = at<Element>(call, &Activation::up);
  const auto y = at<Element>(call, &Activation::y);
  const bool is_gelu = call.op.kind == program::ActivationKind::gelu;
  for (std::uint64_t row = 0; row < call.op.rows; ++row) {
    for (std::uint64_t i = 0; i < call.op.columns; ++i) {
      const auto value = x(row, i);
      y.set(row, i, is_gelu ? value * distribution(value) : up(row, i) * value * logistic(value));
    }
  }
}

template <class Element>
void play(const Arguments<ActivationGradient>& call) {
  using Op = ActivationGradient;
  const auto dy = at<Element>(call, &Op::dy), x = at<Element>(call, &Op::x);
  const auto up = at<Element>(call, &Op::up), dx = at<Element>(call, &Op::dx);
  const auto dup = at<Element>(call, &Op::dup);
  for (std::uint64_t row = 0; row < call.op.rows; ++row) {
    for (std::uint64_t i = 0; i < call.op.columns; ++i) {
      const auto value = x(row, i), from = dy(row, i);
      if (call.op.kind == program::ActivationKind::gelu) {
        dx.set(row, i, from * (distribution(value) + value * density(value)));
        continue;
      }
      const auto gate = logistic(value), other = up(row, i);
      dx.set(row, i, from * other * gate * (1 + value * (1 - gate)));
      dup.set(row, i, from * value * gate);
    }
  }
}

template <class Element>
void play(const Arguments<Softmax>& call) {
  using Value = typename Element::Value;
  const auto x = at<Element>(call, &Softmax::x), y = at<Element>(call, &Softmax::y);
  const std::uint64_t columns = call.op.columns;
  for (std::uint64_t row = 0; row < std::uint64_t{call.op.rows} * call.op.batch; ++row) {
    Value most = x(row, 0), sum = 0;
    for (std::uint64_t i = 0; i < columns; ++i) most = std::max(most, x(row, i));
    for (std::uint64_t i = 0; i < columns; ++i) sum += std::exp(x(row, i) - most);
    for (std::uint64_t i = 0; i < columns; ++i) y.set(row, i, std::exp(x(row, i) - most) / sum);
  }
}

template <class Element>
void play(const Arguments<SoftmaxGradient>& call) {
  using Op = SoftmaxGradient;
  const auto y = at<Element>(call, &Op::y), dy = at<Element>(call, &Op::dy);
  const auto dx = at<Element>(call, &Op::dx);
  const std::uint64_t columns = call.op.columns;
  for (std::uint64_t row = 0; row < std::uint64_t{call.op.rows} * call.op.batch; ++row) {
    typename Element::Value dot = 0;
    for (std::uint64_t i = 0; i < columns; ++i) dot += dy(row, i) * y(row, i);
    for (std::uint64_t i = 0; i < columns; ++i) {
      dx.set(row, i, y(row, i) * (dy(row, i) - dot));
    }
  }
}

/// Starts an op whose matrices are all of one floating type.
template <class Op>
cudaError_t start_floating(const Arguments<Op>& call, cudaStream_t stream) {
  return standin::start_any(call, stream, [](const Arguments<Op>& started) {
    standin::with_floating(started.type, [&](auto element) {
      play<decltype(element)>(started);
      return true;
    });
  });
}

template <class State, class Gradient, class Weight>
void play_update(const Arguments<Update>& call) {
  const Update& op = call.op;
  const auto state = [&](program::Slice Update::*member) {
    return reinterpret_cast<State*>(call[member].data);
  };
  const bool has_master = call[&Update::master].data != nullptr;
  State* const w = state(has_master ? &Update::master : &Update::weight);
  State *const m = state(&Update::moment1), *const v = state(&Update::moment2);
  State* const powers = state(&Update::powers);
  const bool is_adam = op.optimizer == program::Optimizer::adam;
  const auto number = [](double value) { return static_cast<State>(value); };
  if (is_adam && call.powers == Powers::advance) {
    powers[0] = number(static_cast<double>(powers[0]) * op.beta1);
    powers[1] = number(static_cast<double>(powers[1]) * op.beta2);
  }
  for (std::uint64_t i = 0; i < op.weight.count; ++i) {
    const State g = static_cast<State>(Gradient::load(call[&Update::gradient].data, i)) *
                    number(op.gradient_scale);
    State step = g;
    if (is_adam) {
      m[i] = number(op.beta1) * m[i] + number(1 - op.beta1) * g;
      v[i] = number(op.beta2) * v[i] + number(1 - op.beta2) * g * g;
      const State correction1 = number(1 - static_cast<double>(powers[0]));
      const State correction2 = number(1 - static_cast<double>(powers[1]));
      step = (m[i] / correction1) / (std::sqrt(v[i] / correction2) + number(op.epsilon));
    }
    w[i] -= number(op.rate) * step;
    if (!has_master) continue;
    Weight::store(call[&Update::weight].data, i, static_cast<typename Weight::Value>(w[i]));
  }
}

void play_update_of_types(const Arguments<Update>& call) {
  if (call[&Update::gradient].type == program::DType::f64) {
    return play_update<double, standin::Plain<double>, standin::Plain<double>>(call);
  }
  standin::with_floating(call[&Update::gradient].type, [&](auto gradient) {
    return standin::with_floating(call[&Update::weight].type, [&](auto weight) {
      play_update<float, decltype(gradient), decltype(weight)>(call);
      return true;
    });
  });
}

std::byte* element_at(const Arguments<Checksum>& call, std::uint64_t i) {
  const MatrixAt src = call[&Checksum::src];
  const std::uint64_t row = i / call.op.columns;
  const std::uint64_t at = row / call.op.rows * src.batch_stride +
                           row % call.op.rows * src.row_stride + i % call.op.columns;
  const std::uint64_t size = program::element_size(src.type);
  standin::require_reachable(src.data + at * size, size);
  return src.data + at * size;
}

void play_checksum(const Arguments<Checksum>& call) {
  const program::DType type = call[&Checksum::src].type;
  const std::uint64_t size = program::element_size(type);
  if (const std::byte* const flip = call[&Checksum::flip].data; flip != nullptr) {
    std::uint64_t words[2] = {0, 0};  // an element, and the bits to flip in it
    std::memcpy(words, flip, sizeof words);
    if (words[1] != 0) {
      std::byte* const element = element_at(call, words[0]);
      for (std::uint64_t byte = 0; byte < size; ++byte) {
        element[byte] ^= static_cast<std::byte>(words[1] >> (8 * byte));
      }
    }
  }
  const std::uint64_t mask = program::exponent_mask(type);
  std::uint64_t sums[2] = {0, 0};
  const std::uint64_t elements = std::uint64_t{call.op.batch} * call.op.rows * call.op.columns;
  for (std::uint64_t i = 0; i < elements; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, element_at(call, i), size);
    sums[0] += program::checksum_term(bits, i);
    sums[1] += program::is_finite(bits, mask) ? 0 : 1;
  }
  std::memcpy(call[&Checksum::sum].data, sums, sizeof sums);
}

}  // namespace

cudaError_t start(const Arguments<Norm>& call, cudaStream_t stream) {
  return start_floating(call, stream);
}
cudaError_t start(const Arguments<NormGradient>& call, cudaStream_t stream) {
  return start_floating(call, stream);
}
cudaError_t start(const Arguments<Activation>& call, cudaStream_t stream) {
  return start_floating(call, stream);
}
cudaError_t start(const Arguments<ActivationGradient>& call, cudaStream_t stream) {
  return start_floating(call, stream);
}
cudaError_t start(const Arguments<Softmax>& call, cudaStream_t stream) {
  return start_floating(call, stream);
}
cudaError_t start(const Arguments<SoftmaxGradient>& call, cudaStream_t stream) {
  return start_floating(call, stream);
}
cudaError_t start(const Arguments<Update>& call, cudaStream_t stream) {
  return standin::start_any(call, stream, play_update_of_types);
}
cudaError_t start(const Arguments<Checksum>& call, cudaStream_t stream) {
  return standin::start_any(call, stream, play_checksum);
}

}  // namespace isoscale::executor::cuda
