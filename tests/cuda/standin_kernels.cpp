// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The kernels of copies, fills, sums, casts, lists and rows by the host executor's loops. Operands
// in types that the host does not compute in are copied to f32 and back, which rounds once, as the
// kernels do.
#include "executor/cuda/kernels/kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <type_traits>
#include <vector>

#include "executor/host/compute_ops.hpp"
#include "program/low_precision.hpp"
#include "tests/cuda/standin_starts.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::DType;
using standin::require_reachable;

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
      call.operands[number] = {reinterpret_cast<std::byte*>(copy), DType::f32};
      if (operand.mode == program::Mode::read) return;
      Written to{at, copy, 1, operand.slice(call.op).count};
      if constexpr (std::is_same_v<decltype(operand.member), program::Matrix Op::*>) {
        const program::Extents extents = operand.extents(call.op);
        const program::Matrix& matrix = call.op.*operand.member;
        to = {at,
              copy,
              extents.rows,
              extents.columns,
              extents.batch,
              matrix.row_stride,
              matrix.batch_stride};
      }
      written_.push_back(to);
    });
    if (program::narrow_format(call.type)) call.type = DType::f32;
  }

  /// Rounds what the op has written; other operands may lie between the rows.
  void store() const {
    for (const Written& to : written_) {
      for (std::uint64_t row = 0; row < to.rows * to.batch; ++row) {
        const std::uint64_t at = row / to.rows * to.batch_stride + row % to.rows * to.row_stride;
        const std::vector<double> values(to.copy + at, to.copy + at + to.columns);
        host::narrow_row(values.data(), to.stored.type,
                         to.stored.data + at * program::element_size(to.stored.type), to.columns);
      }
    }
  }

 private:
  struct Written {
    OperandAt stored;
    const float* copy = nullptr;
    std::uint64_t rows = 0, columns = 0, batch = 1, row_stride = 0, batch_stride = 0;
  };
  std::map<std::byte*, std::vector<float>> copies_;
  std::vector<Written> written_;
};

template <class Op>
void play(Arguments<Op> call) {
  Widened widened{call};
  host::run(call);
  widened.store();
}

/// Elements of any type are filled as they are.
void play(const Arguments<program::Fill>& call) { host::run(call); }

void play(Arguments<program::Rows> call) {
  const std::size_t indices = std::size_t{call.op.rows} * call.op.each;
  require_reachable(call.from, indices * sizeof *call.from);
  call.op.from.assign(call.from, call.from + indices);
  play<program::Rows>(std::move(call));
}

/// A scale that is a power of two is exact in every type; products by others are taken in f64.
void play(const Arguments<program::Cast>& call) {
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
    require_reachable(call.largest, sizeof *call.largest);
    *call.largest = std::bit_cast<unsigned>(largest);
    std::memcpy(call[&Cast::descale].data, &inverse, sizeof inverse);
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

void play(const StridedCopy& pieces) {
  for (std::size_t b = 0; b < pieces.batch; ++b) {
    for (std::size_t row = 0; row < pieces.rows; ++row) {
      const std::byte* const src = pieces.src + b * pieces.src_batch + row * pieces.src_row;
      std::byte* const dst = pieces.dst + b * pieces.dst_batch + row * pieces.dst_row;
      require_reachable(src, pieces.row_bytes);
      require_reachable(dst, pieces.row_bytes);
      std::memcpy(dst, src, pieces.row_bytes);
    }
  }
}

template <class Op>
cudaError_t start_any(const Arguments<Op>& call, cudaStream_t stream) {
  return standin::start_any(call, stream, [](const Arguments<Op>& started) { play(started); });
}

}  // namespace

cudaError_t start(const StridedCopy& pieces, cudaStream_t stream) {
  standin::submit(stream, [pieces] { play(pieces); });
  return cudaGetLastError();  // finds the error of an earlier call that nobody has cleared
}
cudaError_t start(const Arguments<program::Fill>& call, cudaStream_t stream) {
  return start_any(call, stream);
}
cudaError_t start(const Arguments<program::Add>& call, cudaStream_t stream) {
  return start_any(call, stream);
}
cudaError_t start(const Arguments<program::Cast>& call, cudaStream_t stream) {
  return start_any(call, stream);
}
cudaError_t start(const Arguments<program::Select>& call, cudaStream_t stream) {
  return start_any(call, stream);
}
cudaError_t start(const Arguments<program::Spread>& call, cudaStream_t stream) {
  return start_any(call, stream);
}
cudaError_t start(const Arguments<program::Rows>& call, cudaStream_t stream) {
  return start_any(call, stream);
}

}  // namespace isoscale::executor::cuda
