// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <type_traits>
#include <vector>

#include "executor/host/compute_calls.hpp"
#include "program/op.hpp"

namespace isoscale::executor::host {
namespace {

using program::ActivationKind;
using program::DType;

/// Returns a row of a batch of matrices of T, counted over all of them; null if there are none.
template <class T>
T* row_of(const StoredMatrix& matrix, std::size_t row) {
  if (matrix.data == nullptr) return nullptr;
  const std::size_t element =
      row / matrix.rows * matrix.batch_stride + row % matrix.rows * matrix.row_stride;
  return reinterpret_cast<T*>(matrix.data) + element;
}

/// Returns the sum of term(i) for i < count. It keeps as many partial sums as fill the pipelines of
/// a core, which also keeps rounding errors small for rows of thousands of f32.
template <class T, class Term>
T sum_of(std::size_t count, const Term& term) {
  std::array<T, 8> parts{};
  std::size_t i = 0;
  for (; i + parts.size() <= count; i += parts.size()) {
    for (std::size_t p = 0; p < parts.size(); ++p) parts[p] += term(i + p);
  }
  for (; i < count; ++i) parts[i % parts.size()] += term(i);
  for (std::size_t width = parts.size() / 2; width > 0; width /= 2) {
    for (std::size_t p = 0; p < width; ++p) parts[p] += parts[p + width];
  }
  return parts[0];
}

/// Calls `use` with a value of the type in which the host computes elements of `type`.
template <class Use>
void computed_as(DType type, const Use& use) {
  type == DType::f64 ? use(double{}) : use(float{});
}

template <class T>
void norm(const NormCall& call) {
  auto* const inverses = reinterpret_cast<T*>(call.inverse);
  const std::size_t columns = call.x.columns;
  for (std::size_t row = 0; row < call.x.rows; ++row) {
    const T* s = row_of<T>(call.x, row);
    if (const T* const more = row_of<T>(call.addend, row)) {
      T* const to = row_of<T>(call.sum, row);
      for (std::size_t i = 0; i < columns; ++i) to[i] = s[i] + more[i];
      s = to;
    }
    const T mean =
        sum_of<T>(columns, [s](std::size_t i) { return s[i] * s[i]; }) / static_cast<T>(columns);
    const T inverse = 1 / std::sqrt(mean + static_cast<T>(call.epsilon));
    inverses[row] = inverse;
    T* const to = row_of<T>(call.y, row);
    for (std::size_t i = 0; i < columns; ++i) to[i] = s[i] * inverse;
  }
}

template <class T>
void norm_gradient(const NormGradientCall& call) {
  const auto* const inverses = reinterpret_cast<const T*>(call.inverse);
  const std::size_t columns = call.dy.columns;
  for (std::size_t row = 0; row < call.dy.rows; ++row) {
    const T *const dys = row_of<T>(call.dy, row), *const ss = row_of<T>(call.s, row);
    const T* const more = row_of<T>(call.addend, row);
    const T inverse = inverses[row];
    // mean(dy * y) * y = mean(dy * s) * inverse^2 * s
    const T dot = sum_of<T>(columns, [=](std::size_t i) { return dys[i] * ss[i]; });
    const T factor = dot / static_cast<T>(columns) * inverse * inverse;
    T* const to = row_of<T>(call.dx, row);
    for (std::size_t i = 0; i < columns; ++i) {
      const T gradient = inverse * (dys[i] - ss[i] * factor);
      to[i] = more == nullptr ? gradient : gradient + more[i];
    }
  }
}

/// Returns P(Z <= x) of the standard normal distribution: gelu(x) = x * distribution(x).
template <class T>
T distribution(T x) {
  return (1 + std::erf(x / std::numbers::sqrt2_v<T>)) / 2;
}
template <class T>
T density(T x) {
  constexpr T factor = std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
  return factor * std::exp(-x * x / 2);
}
template <class T>
T logistic(T x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
void activation(const ActivationCall& call) {
  for (std::size_t row = 0; row < call.x.rows; ++row) {
    const T *const xs = row_of<T>(call.x, row), *const ups = row_of<T>(call.up, row);
    T* const to = row_of<T>(call.y, row);
    for (std::size_t i = 0; i < call.x.columns; ++i) {
      to[i] = call.kind == ActivationKind::gelu ? xs[i] * distribution(xs[i])
                                                : ups[i] * xs[i] * logistic(xs[i]);
    }
  }
}

template <class T>
void activation_gradient(const ActivationGradientCall& call) {
  for (std::size_t row = 0; row < call.x.rows; ++row) {
    const T *const dys = row_of<T>(call.dy, row), *const xs = row_of<T>(call.x, row);
    const T* const ups = row_of<T>(call.up, row);
    T* const dxs = row_of<T>(call.dx, row);
    T* const dups = row_of<T>(call.dup, row);
    for (std::size_t i = 0; i < call.x.columns; ++i) {
      const T at = xs[i], from = dys[i];
      if (ups == nullptr) {
        dxs[i] = from * (distribution(at) + at * density(at));
        continue;
      }
      const T gate = logistic(at), other = ups[i];  // before dx or dup overwrite them
      dxs[i] = from * other * gate * (1 + at * (1 - gate));
      dups[i] = from * at * gate;
    }
  }
}

template <class T>
void softmax(const SoftmaxCall& call) {
  const std::size_t columns = call.x.columns;
  for (std::size_t row = 0; row < call.x.rows * call.x.batch; ++row) {
    const T* const from = row_of<T>(call.x, row);
    const T most = *std::max_element(from, from + columns);
    T* const to = row_of<T>(call.y, row);
    for (std::size_t i = 0; i < columns; ++i) to[i] = std::exp(from[i] - most);
    const T sum = sum_of<T>(columns, [to](std::size_t i) { return to[i]; });
    for (std::size_t i = 0; i < columns; ++i) to[i] /= sum;
  }
}

template <class T>
void softmax_gradient(const SoftmaxGradientCall& call) {
  const std::size_t columns = call.y.columns;
  for (std::size_t row = 0; row < call.y.rows * call.y.batch; ++row) {
    const T *const ys = row_of<T>(call.y, row), *const dys = row_of<T>(call.dy, row);
    const T dot = sum_of<T>(columns, [=](std::size_t i) { return dys[i] * ys[i]; });
    T* const to = row_of<T>(call.dx, row);
    for (std::size_t i = 0; i < columns; ++i) to[i] = ys[i] * (dys[i] - dot);
  }
}

bool is_empty(const StoredMatrix& matrix) { return matrix.columns == 0; }

/// Returns a number that sorts like the magnitude of the value, with NaN above all.
template <class T>
auto magnitude(T value) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return std::bit_cast<Bits>(std::abs(value));
}

/// Returns the places of the `keep` elements of largest magnitude in a block, in ascending order.
template <class T>
std::vector<std::size_t> greatest(const std::vector<T>& block, std::size_t keep) {
  std::vector<std::size_t> order(block.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (keep < order.size()) {
    const auto before = [&](std::size_t a, std::size_t b) {
      const auto of_a = magnitude(block[a]), of_b = magnitude(block[b]);
      return of_a != of_b ? of_a > of_b : a < b;
    };
    std::ranges::nth_element(order, order.begin() + static_cast<std::ptrdiff_t>(keep), before);
    order.resize(keep);
    std::ranges::sort(order);
  }
  return order;
}

template <class T>
void select(const SelectCall& call) {
  auto* values = reinterpret_cast<T*>(call.values);
  std::int32_t* places = call.places;
  std::vector<T> block;
  for (std::size_t begin = 0; begin < call.count; begin += call.block) {
    auto* const src = reinterpret_cast<T*>(call.src) + begin;
    block.assign(src, src + std::min(call.block, call.count - begin));
    const std::vector<std::size_t> taken = greatest(block, call.keep);
    std::fill_n(values, call.keep, T{0});
    std::fill_n(places, call.keep, -1);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      values[i] = block[taken[i]];
      places[i] = static_cast<std::int32_t>(begin + taken[i]);
      src[taken[i]] = 0;
    }
    values += call.keep;
    places += call.keep;
  }
}

template <class T>
void spread(const SpreadCall& call) {
  const auto* const values = reinterpret_cast<const T*>(call.values);
  const std::size_t blocks =
      program::block_count(call.count, static_cast<std::uint32_t>(call.block));
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t begin = b * call.block;
    const std::size_t count = std::min(call.block, call.count - begin);
    auto* const sum = reinterpret_cast<T*>(call.dst) + begin;
    std::fill_n(sum, count, T{0});
    for (std::size_t part = 0; part < call.parts; ++part) {
      const std::size_t first = (part * blocks + b) * call.keep;
      for (std::size_t i = first; i < first + call.keep; ++i) {
        // A place of -1 is in no block.
        const std::int64_t at = call.places[i] - static_cast<std::int64_t>(begin);
        if (at >= 0 && at < static_cast<std::int64_t>(count)) sum[at] += values[i];
      }
    }
  }
}

/// Copies rows that are neither summed nor scaled, without converting them.
void move_rows(const RowsCall& call) {
  const std::size_t size = program::element_size(call.type);
  std::byte* dst = call.dst;
  for (const std::uint32_t row : call.from) {
    if (row == program::Rows::no_row) {
      std::memset(dst, 0, call.columns * size);
    } else {
      std::memcpy(dst, call.src + row * call.src_row * size, call.columns * size);
    }
    dst += call.dst_row * size;
  }
}

template <class T>
void add_rows(const RowsCall& call) {
  const auto scale = static_cast<T>(call.scale);
  auto* dst = reinterpret_cast<T*>(call.dst);
  for (std::size_t i = 0; i < call.from.size(); i += call.each, dst += call.dst_row) {
    std::fill_n(dst, call.columns, T{0});
    for (std::size_t j = i; j < i + call.each; ++j) {
      if (call.from[j] == program::Rows::no_row) continue;
      const auto* const row = reinterpret_cast<const T*>(call.src) + call.from[j] * call.src_row;
      for (std::size_t c = 0; c < call.columns; ++c) dst[c] += row[c];
    }
    for (std::size_t c = 0; c < call.columns; ++c) dst[c] *= scale;
  }
}

}  // namespace

void run(const NormCall& call) {
  if (is_empty(call.x)) return;
  computed_as(call.x.type, [&]<class T>(T) { norm<T>(call); });
}

void run(const NormGradientCall& call) {
  if (is_empty(call.dy)) return;
  computed_as(call.dy.type, [&]<class T>(T) { norm_gradient<T>(call); });
}

void run(const ActivationCall& call) {
  computed_as(call.x.type, [&]<class T>(T) { activation<T>(call); });
}

void run(const ActivationGradientCall& call) {
  computed_as(call.x.type, [&]<class T>(T) { activation_gradient<T>(call); });
}

void run(const SoftmaxCall& call) {
  if (is_empty(call.x)) return;
  computed_as(call.x.type, [&]<class T>(T) { softmax<T>(call); });
}

void run(const SoftmaxGradientCall& call) {
  if (is_empty(call.y)) return;
  computed_as(call.y.type, [&]<class T>(T) { softmax_gradient<T>(call); });
}

void run(const SelectCall& call) {
  computed_as(call.type, [&]<class T>(T) { select<T>(call); });
}

void run(const SpreadCall& call) {
  computed_as(call.type, [&]<class T>(T) { spread<T>(call); });
}

void run(const RowsCall& call) {
  if (call.each == 1 && call.scale == 1) return move_rows(call);
  computed_as(call.type, [&]<class T>(T) { add_rows<T>(call); });
}

}  // namespace isoscale::executor::host
