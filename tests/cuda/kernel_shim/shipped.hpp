// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/cuda/kernels/kernels.hpp"
#include "program/operands.hpp"
#include "tests/cuda/kernel_shim/arrays.hpp"
#include "tests/executor/narrow_ops.hpp"
#include "tests/executor/sketch.hpp"

/// Here start() is that of the shipped kernels: CMakeLists.txt renames it.
namespace isoscale::kernel_shim {

inline constexpr std::array floats{program::DType::f64, program::DType::f32, program::DType::f16,
                                   program::DType::bf16};

/// A random case of one op, whose operands are arrays.
template <class Op>
class OpCase {
 public:
  OpCase(Case& one, program::DType type, const Op& op) : one_(one) {
    call.op = op;
    call.type = type;
  }

  /// Adds a matrix of the op's type and extents with strides of its own.
  void matrix(program::Matrix Op::*member, Values values) {
    program::Extents extents{call.op.rows, call.op.columns};
    if constexpr (requires { call.op.batch; }) extents.batch = call.op.batch;
    matrix(member, call.type, extents, values);
  }
  void matrix(program::Matrix Op::*member, program::DType type, const program::Extents& extents,
              Values values) {
    program::Matrix& at = call.op.*member;
    at.row_stride = one_.stride(extents.columns);
    at.batch_stride = extents.rows * at.row_stride + (one_.coin() ? one_.below(3) : 0);
    place(&at.slice, member, one_.take(type, extents.batch * at.batch_stride, values));
  }
  /// Adds the matrices of the op's table, with numbers to read. Those that only some ops of the
  /// kind have are added if `with_optional` is true.
  void matrices(bool with_optional = false) {
    program::for_each_in_table<Op>([&](const auto& operand, std::size_t /*number*/) {
      if constexpr (std::is_same_v<decltype(operand.member), program::Matrix Op::*>) {
        const bool is_in_all = !operand.is_optional && operand.condition == nullptr;
        if (!is_in_all && !with_optional) return;
        const bool is_read = operand.mode == program::Mode::read;
        matrix(operand.member, is_read ? Values::numbers : Values::bits);
      }
    });
  }
  Array slice(program::Slice Op::*member, program::DType type, std::uint64_t count, Values values) {
    return place(&(call.op.*member), member, one_.take(type, count, values));
  }
  /// Adds memory that a memset of the stand-ins may write too.
  Array reachable(program::Slice Op::*member, program::DType type, std::uint64_t count) {
    return place(&(call.op.*member), member, one_.take_reachable(type, count));
  }
  /// Lets an operand be another one.
  void alias(program::Matrix Op::*member, program::Matrix Op::*other) {
    call.op.*member = call.op.*other;
    call.at(member) = call.at(other);
  }

  /// Plays the shipped kernels, then the host's loops on their copies, and compares.
  void run(const std::string& what, Tolerance tolerance) {
    EXPECT_EQ(executor::cuda::start(call, one_.stream()), cudaSuccess);
    for (executor::OperandAt& at : call.operands) at.data = one_.reference_of(at.data);
    if constexpr (requires { call.largest; }) call.largest = one_.reference_of(call.largest);
    executor::play_op(call);
    one_.compare(what, tolerance);
  }

  executor::Arguments<Op> call;

 private:
  template <class Member>
  Array place(program::Slice* slice, Member member, const Array& array) {
    slice->buffer = 0;
    slice->count = array.bytes / program::element_size(array.type);
    call.at(member) = {array.kernel, array.type};
    return array;
  }

  Case& one_;
};

/// Calls try_case(case, type) for some seeds of each type.
template <class Types, class Try>
void for_cases(const Types& types, int rounds, const Try& try_case) {
  for (const program::DType type : types) {
    for (int seed = 0; seed < rounds; ++seed) {
      Case one{static_cast<std::uint64_t>(seed)};
      try_case(one, type);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace isoscale::kernel_shim
