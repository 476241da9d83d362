// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/emulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/error.hpp"
#include "executor/host/compute_calls.hpp"
#include "program/low_precision.hpp"

namespace isoscale::executor::host {
namespace {

using program::DType;

template <class T>
const T* typed(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}
template <class T>
T* typed(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

[[noreturn]] void refuse(DType type) {
  throw base::Error(fmt::format("the host cannot compute with {}", program::name(type)));
}

template <class Code, class Wide>
void decode_row(const program::NarrowFormat& format, const Code* from, Wide* to,
                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Wide>(decode(format, from[i]));
}

template <class Code, class Wide>
void encode_row(const program::NarrowFormat& format, const Wide* from, Code* to,
                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = static_cast<Code>(encode(format, static_cast<double>(from[i])));
  }
}

template <class T>
std::byte* bytes(std::vector<T>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

/// Returns the largest magnitude, or infinity if some element is not finite.
double largest_magnitude(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(value));
  }
  return largest;
}

/// Returns the transpose of a matrix of rows x columns.
std::vector<double> transpose(const std::vector<double>& values, std::size_t rows,
                              std::size_t columns) {
  std::vector<double> result(values.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < columns; ++i) result[i * rows + row] = values[row * columns + i];
  }
  return result;
}

void round_to_mode(std::vector<float>& values, program::ComputeMode mode) {
  if (mode != program::ComputeMode::tf32) return;
  for (float& value : values) value = program::round_to_tf32(value);
}

/// Does a cast with a fixed scale and no transposed copy in small parts, without a copy of the
/// whole matrix: buckets of gradients are large.
void cast_rows(const CastCall& call) {
  constexpr std::size_t part = 1024;
  std::array<double, part> values{};
  const std::size_t from_size = program::element_size(call.src.type);
  const std::size_t to_size = program::element_size(call.dst.type);
  for (std::size_t row = 0; row < call.src.rows; ++row) {
    for (std::size_t first = 0; first < call.src.columns; first += part) {
      const std::size_t count = std::min(part, call.src.columns - first);
      const std::size_t from = row * call.src.row_stride + first;
      const std::size_t to = row * call.dst.row_stride + first;
      widen_row(call.src.type, call.src.data + from * from_size, values.data(), count);
      for (std::size_t i = 0; i < count; ++i) values[i] *= call.scale;
      narrow_row(values.data(), call.dst.type, call.dst.data + to * to_size, count);
    }
  }
}

}  // namespace

template <class Wide>
void widen_row(DType type, const std::byte* from, Wide* to, std::size_t count) {
  if (const auto format = program::narrow_format(type)) {
    format->bits == 8 ? decode_row(*format, typed<std::uint8_t>(from), to, count)
                      : decode_row(*format, typed<std::uint16_t>(from), to, count);
  } else if (type == DType::f32) {
    std::copy_n(typed<float>(from), count, to);
  } else if (type == DType::f64) {
    const auto* const values = typed<double>(from);
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<Wide>(values[i]);
  } else {
    refuse(type);
  }
}

template <class Wide>
void narrow_row(const Wide* from, DType type, std::byte* to, std::size_t count) {
  if (const auto format = program::narrow_format(type)) {
    format->bits == 8 ? encode_row(*format, from, typed<std::uint8_t>(to), count)
                      : encode_row(*format, from, typed<std::uint16_t>(to), count);
  } else if (type == DType::f32) {
    auto* const values = typed<float>(to);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(from[i]);
  } else if (type == DType::f64) {
    std::copy_n(from, count, typed<double>(to));
  } else {
    refuse(type);
  }
}

template void widen_row(DType, const std::byte*, float*, std::size_t);
template void widen_row(DType, const std::byte*, double*, std::size_t);
template void narrow_row(const float*, DType, std::byte*, std::size_t);
template void narrow_row(const double*, DType, std::byte*, std::size_t);

/// Values are scaled in f64, then rounded once.
void run(const CastCall& call) {
  const bool is_plain =
      call.transposed.data == nullptr && call.scaling == program::CastScale::fixed;
  if (is_plain) return cast_rows(call);
  std::vector<double> values = widen<double>(call.src);
  double scale = call.scale;
  if (call.scaling == program::CastScale::amax) {
    scale = program::amax_scale(call.target, largest_magnitude(values));
    *call.descale = static_cast<float>(1 / scale);
  }
  for (double& value : values) value *= scale;
  if (call.dst.data != nullptr) narrow(values, call.dst);
  if (call.transposed.data != nullptr) {
    narrow(transpose(values, call.src.rows, call.src.columns), call.transposed);
  }
}

void run(const EmulatedGemmCall& call) {
  const StoredMatrix &a = call.operands[0], &b = call.operands[1];
  const StoredMatrix &c = call.operands[2], &d = call.operands[3];
  std::vector<float> wide_a = widen<float>(a), wide_b = widen<float>(b);
  round_to_mode(wide_a, call.mode);
  round_to_mode(wide_b, call.mode);
  std::vector<float> wide_d =
      c.data != nullptr ? widen<float>(c) : std::vector<float>(d.batch * d.rows * d.columns);
  const auto value = [](const float* scale) { return scale == nullptr ? 1.0 : double{*scale}; };
  const bool a_flips = call.transpose_a == program::Transpose::yes;
  const auto stride = [](const StoredMatrix& matrix) {
    return static_cast<int>(std::max<std::size_t>(matrix.columns, 1));
  };
  run(GemmCall{.element = Element::f32,
               .transpose_a = call.transpose_a,
               .transpose_b = call.transpose_b,
               .m = static_cast<int>(d.rows),
               .n = static_cast<int>(d.columns),
               .k = static_cast<int>(a_flips ? a.rows : a.columns),
               .row_stride_a = stride(a),
               .row_stride_b = stride(b),
               .row_stride_d = stride(d),
               .batch = static_cast<std::uint32_t>(d.batch),
               .batch_stride_a = a.rows * a.columns,
               .batch_stride_b = b.rows * b.columns,
               .batch_stride_d = d.rows * d.columns,
               .alpha = call.alpha * value(call.descale_a) * value(call.descale_b),
               .beta = call.beta,
               .a = bytes(wide_a),
               .b = bytes(wide_b),
               .d = bytes(wide_d),
               .c_to_d = {}});
  narrow(wide_d, d);
}

void run(const EmulatedAddCall& call) {
  const std::vector<float> a = widen<float>(call.operands[0]);
  std::vector<float> sum = widen<float>(call.operands[1]);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + call.scale * sum[i];
  narrow(sum, call.operands[2]);
}

void run(const EmulatedUpdateCall& call) {
  UpdateCall wide = call.wide;
  std::vector<float> gradient, weight;
  if (program::narrow_format(call.gradient)) {
    gradient.resize(wide.count);
    widen_row(call.gradient, wide.gradient, gradient.data(), wide.count);
    wide.gradient = bytes(gradient);
  }
  if (!program::narrow_format(call.weight)) return run(wide);
  weight.resize(wide.count);
  widen_row(call.weight, wide.weight, weight.data(), wide.count);
  wide.weight = bytes(weight);
  run(wide);
  narrow_row(weight.data(), call.weight, call.wide.weight, wide.count);
}

}  // namespace isoscale::executor::host
