// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <type_traits>

#include "executor/cuda/kernels/kernels.hpp"
#include "tests/cuda/standin.hpp"

/// The common parts of the starts of kernels that loops of the host stand in for.
namespace isoscale::standin {

/// True if an op has elements to work on.
template <class Op>
bool has_work(const Op& op) {
  if constexpr (std::is_same_v<Op, program::Checksum>) return true;
  if constexpr (requires { op.batch; }) {
    if (op.batch == 0) return false;
  }
  if constexpr (requires { op.rows; }) return op.rows > 0 && op.columns > 0;
  bool any = true;
  program::for_each_operand(op, [&](const auto& operand, std::size_t /*number*/) {
    any = any && operand.slice(op).count > 0;
  });
  return any;
}

/// Throws Fault unless the GPU reaches all operands.
template <class Op>
void require_operands(const executor::Arguments<Op>& call) {
  program::for_each_operand(call.op, [&](const auto& operand, std::size_t number) {
    const executor::OperandAt& at = call.operands[number];
    if (at.data == nullptr) return;
    require_reachable(at.data, operand.slice(call.op).count * program::element_size(at.type));
  });
}

/// Starts an op as a kernel would: play(call) runs on the stream.
template <class Op, class Play>
cudaError_t start_any(const executor::Arguments<Op>& call, cudaStream_t stream, const Play& play) {
  if (!has_work(call.op)) return cudaSuccess;
  if (!executor::cuda::has_kernel(call)) return cudaErrorNotSupported;
  submit(stream, [call, play] {
    require_operands(call);
    play(call);
  });
  return cudaGetLastError();  // finds the error of an earlier call that nobody has cleared
}

}  // namespace isoscale::standin
