// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstring>
#include <map>

#include "executor/host/compute_ops.hpp"
#include "program/low_precision.hpp"
#include "tests/support/gpu_rounding.hpp"

/// Plays ops that compute in any floating type, by the host executor's loops. Operands in types
/// that the host does not compute in are copied to f32 and back, which rounds once.
namespace isoscale::executor {

/// The f32 copies of an op's operands in narrower types. Operands at one address share a copy.
class Widened {
 public:
  template <class Op>
  explicit Widened(Arguments<Op>& call) {
    const Arguments<Op> stored = call;
    program::for_each_operand(call.op, [&](const auto& operand, std::size_t /*number*/) {
      const OperandAt at = stored.at(operand.member);
      if (at.data == nullptr || !program::narrow_format(at.type)) return;
      std::vector<float>& copy = copies_[at.data];
      const std::uint64_t count = operand.slice(call.op).count;
      if (copy.size() >= count) return;
      std::vector<double> values(count);
      host::widen_row(at.type, at.data, values.data(), count);
      copy.assign(values.begin(), values.end());
    });
    program::for_each_operand(call.op, [&](const auto& operand, std::size_t number) {
      const OperandAt at = stored.at(operand.member);
      const auto found = copies_.find(at.data);
      if (found == copies_.end()) return;
      float* const copy = found->second.data();
      call.operands[number] = {reinterpret_cast<std::byte*>(copy), program::DType::f32};
      if (operand.mode == program::Mode::read) return;
      Written to{at, copy, {1, operand.slice(call.op).count}};
      if constexpr (std::is_same_v<decltype(operand.member), program::Matrix Op::*>) {
        const program::Matrix& matrix = call.op.*operand.member;
        to = {at, copy, operand.extents(call.op), matrix.row_stride, matrix.batch_stride};
      }
      written_.push_back(to);
    });
    if (program::narrow_format(call.type)) call.type = program::DType::f32;
  }

  /// Rounds what the op has written; other operands may lie between the rows.
  void store() const {
    for (const Written& to : written_) {
      const auto [rows, columns, batch] = to.extents;
      for (std::uint64_t row = 0; row < rows * batch; ++row) {
        const std::uint64_t at = row / rows * to.batch_stride + row % rows * to.row_stride;
        const std::vector<double> values(to.copy + at, to.copy + at + columns);
        host::narrow_row(values.data(), to.stored.type,
                         to.stored.data + at * program::element_size(to.stored.type), columns);
      }
    }
  }

 private:
  struct Written {
    OperandAt stored;
    const float* copy = nullptr;
    program::Extents extents;
    std::uint64_t row_stride = 0, batch_stride = 0;
  };
  std::map<std::byte*, std::vector<float>> copies_;
  std::vector<Written> written_;
};

template <class Op>
void play_widened(Arguments<Op> call) {
  const Widened widened{call};
  host::run(call);
  widened.store();
}

template <class Op>
void play_op(const Arguments<Op>& call) {
  play_widened(call);
}

// Elements of any type are filled and summed up as they are.

inline void play_op(const Arguments<program::Fill>& call) { host::run(call); }
inline void play_op(const Arguments<program::Checksum>& call) { host::run(call); }

/// The sum is rounded as it is stored before it is normed: the gradient will read it so.
inline void play_op(Arguments<program::Norm> call) {
  using program::Add;
  using program::Norm;
  if (call[&Norm::sum].data != nullptr) {
    Arguments<Add> sum;
    sum.op = {.rows = call.op.rows,
              .columns = call.op.columns,
              .a = call.op.x,
              .b = std::exchange(call.op.addend, {}),
              .dst = call.op.sum};
    sum.type = call.type;
    sum.operands = {call.at(&Norm::x), std::exchange(call.at(&Norm::addend), {}),
                    call.at(&Norm::sum)};
    play_widened(sum);
    call.op.x = std::exchange(call.op.sum, {});
    call.at(&Norm::x) = std::exchange(call.at(&Norm::sum), {});
  }
  play_widened(call);
}

/// Values are scaled in f64, then rounded once.
inline void play_op(const Arguments<program::Cast>& call) {
  using program::Cast;
  const std::size_t rows = call.op.rows, columns = call.op.columns;
  const MatrixAt src = call[&Cast::src];
  std::vector<double> values(rows * columns), turned(rows * columns);
  const auto row_of = [](const MatrixAt& at, std::size_t row) {
    return at.data + row * at.row_stride * program::element_size(at.type);
  };
  for (std::size_t row = 0; row < rows; ++row) {
    host::widen_row(src.type, row_of(src, row), values.data() + row * columns, columns);
  }
  double scale = call.op.scale;
  if (call.op.scaling == program::CastScale::amax) {
    float largest = 0;
    for (const double value : values) {
      const auto magnitude = std::abs(static_cast<float>(value));
      if (!(magnitude <= largest)) largest = magnitude;  // NaN above all
    }
    scale = program::amax_scale(call.op.target, static_cast<double>(largest));
    const auto inverse = 1 / static_cast<float>(scale);
    std::memcpy(call[&Cast::descale].data, &inverse, sizeof inverse);
    if (call.largest != nullptr) *call.largest = std::bit_cast<unsigned>(largest);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] *= scale;
    turned[i % columns * rows + i / columns] = values[i];
  }
  const auto store = [&](const MatrixAt& to, const std::vector<double>& from, std::size_t width) {
    if (to.data == nullptr) return;
    for (std::size_t row = 0; row * width < from.size(); ++row) {
      host::narrow_row(from.data() + row * width, to.type, row_of(to, row), width);
    }
  };
  store(call[&Cast::dst], values, columns);
  store(call[&Cast::transposed], turned, rows);
}

}  // namespace isoscale::executor
