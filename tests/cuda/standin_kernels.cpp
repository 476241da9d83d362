// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The kernels of our own by the host executor's loops; sums may be taken in another order.
#include "executor/cuda/kernels/kernels.hpp"

#include "tests/cuda/standin.hpp"
#include "tests/executor/narrow_ops.hpp"

namespace isoscale::executor::cuda {
namespace {

using standin::require_reachable;

/// Throws Fault unless the GPU reaches all operands.
template <class Op>
void require_operands(const Arguments<Op>& call) {
  program::for_each_operand(call.op, [&](const auto& operand, std::size_t number) {
    const OperandAt& at = call.operands[number];
    if (at.data == nullptr) return;
    require_reachable(at.data, operand.slice(call.op).count * program::element_size(at.type));
  });
}

template <class Op>
void play(Arguments<Op> call) {
  require_operands(call);
  if constexpr (std::is_same_v<Op, program::Rows>) {
    const std::size_t indices = std::size_t{call.op.rows} * call.op.each;
    require_reachable(call.from, indices * sizeof *call.from);
    call.op.from.assign(call.from, call.from + indices);
  }
  if constexpr (std::is_same_v<Op, program::Cast>) {
    const bool is_measured = call.op.scaling == program::CastScale::amax;
    if (is_measured) require_reachable(call.largest, sizeof *call.largest);
  }
  play_op(call);
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
cudaError_t run(const Arguments<Op>& call, cudaStream_t stream) {
  if (!has_kernel(call)) return cudaErrorNotSupported;
  standin::submit(stream, [call] { play(call); });
  return cudaGetLastError();  // finds the error of an earlier call that nobody has cleared
}

template <class Op>
using Call = const Arguments<Op>&;

}  // namespace

cudaError_t start(const StridedCopy& pieces, cudaStream_t stream) {
  standin::submit(stream, [pieces] { play(pieces); });
  return cudaGetLastError();
}
cudaError_t start(Call<program::Fill> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::Add> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::Cast> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::Update> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::Checksum> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::Norm> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::NormGradient> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::Activation> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::ActivationGradient> op, cudaStream_t on) { return run(op, on); }
cudaError_t start(Call<program::Softmax> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::SoftmaxGradient> op, cudaStream_t on) { return run(op, on); }
cudaError_t start(Call<program::Select> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::Spread> op, cudaStream_t stream) { return run(op, stream); }
cudaError_t start(Call<program::Rows> op, cudaStream_t stream) { return run(op, stream); }

}  // namespace isoscale::executor::cuda
