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

#include "executor/host/compute_ops.hpp"

// Rows of operands that an op needs are not null; only those of optional operands may be.
// NOLINTBEGIN(clang-analyzer-core.NullDereference)
namespace isoscale::executor::host {
namespace {

using program::ActivationKind;
using program::DType;

/// Gives access to a matrix operand by row. Rows are numbered across all matrices of the batch. If
/// the op does not use this operand, every row is a null pointer.
template <class T>
class RowsOf {
 public:
  template <class Op>
  RowsOf(const Arguments<Op>& call, program::Matrix Op::*member)
      : at_(call[member]), rows_(call.op.rows) {}

  T* operator()(std::size_t row) const {
    if (at_.data == nullptr) return nullptr;
    return reinterpret_cast<T*>(at_.data) + row / rows_ * at_.batch_stride +
           row % rows_ * at_.row_stride;
  }

 private:
  MatrixAt at_;
  std::size_t rows_;
};

/// Returns the sum of term(i) for i < count. It keeps 8 independent partial sums, so that additions
/// overlap in the core's pipelines and rounding errors stay small in rows of thousands of f32.
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

template <class T>
void play(const Arguments<program::Norm>& call) {
  using Op = program::Norm;
  const RowsOf<T> xs{call, &Op::x}, addends{call, &Op::addend}, sums{call, &Op::sum};
  const RowsOf<T> ys{call, &Op::y};
  auto* const inverses = reinterpret_cast<T*>(call[&Op::inverse].data);
  const std::size_t columns = call.op.columns;
  for (std::size_t row = 0; row < call.op.rows; ++row) {
    const T* s = xs(row);
    if (const T* const more = addends(row)) {
      T* const to = sums(row);
      for (std::size_t i = 0; i < columns; ++i) to[i] = s[i] + more[i];
      s = to;
    }
    const T mean =
        sum_of<T>(columns, [s](std::size_t i) { return s[i] * s[i]; }) / static_cast<T>(columns);
    const T inverse = 1 / std::sqrt(mean + static_cast<T>(call.op.epsilon));
    inverses[row] = inverse;
    T* const to = ys(row);
    for (std::size_t i = 0; i < columns; ++i) to[i] = s[i] * inverse;
  }
}

template <class T>
void play(const Arguments<program::NormGradient>& call) {
  using Op = program::NormGradient;
  const RowsOf<T> dy{call, &Op::dy}, s{call, &Op::s}, addend{call, &Op::addend}, dx{call, &Op::dx};
  const auto* const inverses = reinterpret_cast<const T*>(call[&Op::inverse].data);
  const std::size_t columns = call.op.columns;
  for (std::size_t row = 0; row < call.op.rows; ++row) {
    const T *const dys = dy(row), *const ss = s(row), *const more = addend(row);
    const T inverse = inverses[row];
    // The forward op computed y = s * inverse. So mean(dy * y) * y = mean(dy * s) * inverse^2 * s.
    const T dot = sum_of<T>(columns, [=](std::size_t i) { return dys[i] * ss[i]; });
    const T factor = dot / static_cast<T>(columns) * inverse * inverse;
    T* const to = dx(row);
    for (std::size_t i = 0; i < columns; ++i) {
      const T gradient = inverse * (dys[i] - ss[i] * factor);
      to[i] = more == nullptr ? gradient : gradient + more[i];
    }
  }
}

/// Returns the distribution function of the standard normal distribution at x; gelu(x) is x *
/// distribution(x).
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
void play(const Arguments<program::Activation>& call) {
  using Op = program::Activation;
  const RowsOf<T> x{call, &Op::x}, up{call, &Op::up}, y{call, &Op::y};
  for (std::size_t row = 0; row < call.op.rows; ++row) {
    const T *const xs = x(row), *const ups = up(row);
    T* const to = y(row);
    for (std::size_t i = 0; i < call.op.columns; ++i) {
      to[i] = call.op.kind == ActivationKind::gelu ? xs[i] * distribution(xs[i])
                                                   : ups[i] * xs[i] * logistic(xs[i]);
    }
  }
}

template <class T>
void play(const Arguments<program::ActivationGradient>& call) {
  using Op = program::ActivationGradient;
  const RowsOf<T> dy{call, &Op::dy}, x{call, &Op::x}, up{call, &Op::up};
  const RowsOf<T> dx{call, &Op::dx}, dup{call, &Op::dup};
  for (std::size_t row = 0; row < call.op.rows; ++row) {
    const T *const dys = dy(row), *const xs = x(row), *const ups = up(row);
    T *const dxs = dx(row), *const dups = dup(row);
    for (std::size_t i = 0; i < call.op.columns; ++i) {
      const T at = xs[i], from = dys[i];
      if (ups == nullptr) {
        dxs[i] = from * (distribution(at) + at * density(at));
        continue;
      }
      // Element i of dy, x and up is read before dx and dup are written, which may be the same
      // memory.
      const T gate = logistic(at), other = ups[i];
      dxs[i] = from * other * gate * (1 + at * (1 - gate));
      dups[i] = from * at * gate;
    }
  }
}

template <class T>
void play(const Arguments<program::Softmax>& call) {
  const RowsOf<T> x{call, &program::Softmax::x}, y{call, &program::Softmax::y};
  const std::size_t columns = call.op.columns;
  for (std::size_t row = 0; row < std::size_t{call.op.rows} * call.op.batch; ++row) {
    const T* const from = x(row);
    const T most = *std::max_element(from, from + columns);
    T* const to = y(row);
    for (std::size_t i = 0; i < columns; ++i) to[i] = std::exp(from[i] - most);
    const T sum = sum_of<T>(columns, [to](std::size_t i) { return to[i]; });
    for (std::size_t i = 0; i < columns; ++i) to[i] /= sum;
  }
}

template <class T>
void play(const Arguments<program::SoftmaxGradient>& call) {
  using Op = program::SoftmaxGradient;
  const RowsOf<T> y{call, &Op::y}, dy{call, &Op::dy}, dx{call, &Op::dx};
  const std::size_t columns = call.op.columns;
  for (std::size_t row = 0; row < std::size_t{call.op.rows} * call.op.batch; ++row) {
    const T *const ys = y(row), *const dys = dy(row);
    const T dot = sum_of<T>(columns, [=](std::size_t i) { return dys[i] * ys[i]; });
    T* const to = dx(row);
    for (std::size_t i = 0; i < columns; ++i) to[i] = ys[i] * (dys[i] - dot);
  }
}

/// Returns an unsigned integer that sorts like the magnitude of the value; NaN sorts above all
/// numbers.
template <class T>
auto magnitude(T value) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return std::bit_cast<Bits>(std::abs(value));
}

/// Returns the indices, ascending, of the `keep` elements of a block that have the largest
/// magnitudes.
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
void play(const Arguments<program::Select>& call) {
  using program::Select;
  const std::size_t count = call.op.src.count, keep = call.op.keep;
  auto* const elements = reinterpret_cast<T*>(call[&Select::src].data);
  auto* values = reinterpret_cast<T*>(call[&Select::values].data);
  auto* places = reinterpret_cast<std::int32_t*>(call[&Select::places].data);
  std::vector<T> block;
  for (std::size_t begin = 0; begin < count; begin += call.op.block) {
    T* const src = elements + begin;
    block.assign(src, src + std::min<std::size_t>(call.op.block, count - begin));
    const std::vector<std::size_t> taken = greatest(block, keep);
    std::fill_n(values, keep, T{0});
    std::fill_n(places, keep, -1);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      values[i] = block[taken[i]];
      places[i] = static_cast<std::int32_t>(begin + taken[i]);
      src[taken[i]] = 0;
    }
    values += keep;
    places += keep;
  }
}

template <class T>
void play(const Arguments<program::Spread>& call) {
  using program::Spread;
  const std::size_t total = call.op.dst.count, keep = call.op.keep;
  const auto* const values = reinterpret_cast<const T*>(call[&Spread::values].data);
  const auto* const places = reinterpret_cast<const std::int32_t*>(call[&Spread::places].data);
  const std::size_t blocks = program::block_count(total, call.op.block);
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t begin = b * call.op.block;
    const std::size_t count = std::min<std::size_t>(call.op.block, total - begin);
    auto* const sum = reinterpret_cast<T*>(call[&Spread::dst].data) + begin;
    std::fill_n(sum, count, T{0});
    for (std::size_t part = 0; part < call.op.parts; ++part) {
      const std::size_t first = (part * blocks + b) * keep;
      for (std::size_t i = first; i < first + keep; ++i) {
        // An index of -1 marks an unused entry of the list; it belongs to no block.
        const std::int64_t at = places[i] - static_cast<std::int64_t>(begin);
        if (at >= 0 && at < static_cast<std::int64_t>(count)) sum[at] += values[i];
      }
    }
  }
}

/// Copies whole rows as bytes. It is used if rows are neither summed nor scaled.
void move_rows(const Arguments<program::Rows>& call) {
  const MatrixAt src = call[&program::Rows::src], dst = call[&program::Rows::dst];
  const std::size_t size = program::element_size(call.type), bytes = call.op.columns * size;
  std::byte* to = dst.data;
  for (const std::uint32_t row : call.op.from) {
    if (row == program::Rows::no_row) {
      std::memset(to, 0, bytes);
    } else {
      std::memcpy(to, src.data + row * src.row_stride * size, bytes);
    }
    to += dst.row_stride * size;
  }
}

template <class T>
void play(const Arguments<program::Rows>& call) {
  const MatrixAt src = call[&program::Rows::src], dst = call[&program::Rows::dst];
  const std::vector<std::uint32_t>& from = call.op.from;
  const auto scale = static_cast<T>(call.op.scale);
  auto* to = reinterpret_cast<T*>(dst.data);
  for (std::size_t i = 0; i < from.size(); i += call.op.each, to += dst.row_stride) {
    std::fill_n(to, call.op.columns, T{0});
    for (std::size_t j = i; j < i + call.op.each; ++j) {
      if (from[j] == program::Rows::no_row) continue;
      const T* const row = reinterpret_cast<const T*>(src.data) + from[j] * src.row_stride;
      for (std::size_t c = 0; c < call.op.columns; ++c) to[c] += row[c];
    }
    for (std::size_t c = 0; c < call.op.columns; ++c) to[c] *= scale;
  }
}

/// Plays an op in the type of its elements, f64 or f32.
template <class Op>
void play_typed(const Arguments<Op>& call) {
  if constexpr (requires { call.op.columns; }) {
    if (call.op.columns == 0) return;
  }
  call.type == DType::f64 ? play<double>(call) : play<float>(call);
}

}  // namespace

void run(const Arguments<program::Norm>& call) { play_typed(call); }
void run(const Arguments<program::NormGradient>& call) { play_typed(call); }
void run(const Arguments<program::Activation>& call) { play_typed(call); }
void run(const Arguments<program::ActivationGradient>& call) { play_typed(call); }
void run(const Arguments<program::Softmax>& call) { play_typed(call); }
void run(const Arguments<program::SoftmaxGradient>& call) { play_typed(call); }
void run(const Arguments<program::Select>& call) { play_typed(call); }
void run(const Arguments<program::Spread>& call) { play_typed(call); }
void run(const Arguments<program::Rows>& call) {
  call.op.each == 1 && call.op.scale == 1 ? move_rows(call) : play_typed(call);
}

}  // namespace isoscale::executor::host
// NOLINTEND(clang-analyzer-core.NullDereference)
