// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "executor/op_arguments.hpp"
#include "executor/operand_addresses.hpp"
#include "program/op.hpp"

/// Executes ops that compute or copy on the host, after the addresses of operands are looked up.
/// A GemmCall calls BLAS; each run() is a loop over elements. Unless a comment says otherwise, the
/// elements are f64 or f32.
namespace isoscale::executor::host {

/// True if the host computes ops of this kind on elements of this type.
[[nodiscard]] bool computes(program::OpKind kind, program::DType type);
/// Throws base::Error, which names the operand, if the host cannot compute ops of this kind in the
/// operand's type. Operands whose type follows from the op or from its common type are not checked.
void require_computed(program::OpKind kind, const TypedOperand& operand);

struct Player;

/// A matrix multiplication by BLAS, ready to start.
struct GemmCall {
  program::DType type = program::DType::f32;                 ///< f32 or f64
  program::Gemm op{};                                        ///< with extents that BLAS can take
  int row_stride_a = 0, row_stride_b = 0, row_stride_d = 0;  ///< as BLAS takes them, in elements
  const std::byte *a = nullptr, *b = nullptr;
  std::byte* d = nullptr;
  std::optional<StridedCopy> c_to_d;  ///< copies C to D first, since BLAS adds the product to D;
                                      ///< absent if C is D or is not read

  void operator()(Player& player) const;
};
/// Throws base::Error if the host cannot do the multiplication.
[[nodiscard]] GemmCall gemm_call(const Resolver& resolver, const program::Gemm& op);

/// Copies elements of any type.
void run(const StridedCopy& call);
/// Adds f64, f32 and integers of all types.
void run(const Arguments<program::Add>& call);
/// Casts between any two of f64, f32, f16 and bf16, multiplying by a fixed scale. It writes no
/// transposed copy.
void run(const Arguments<program::Cast>& call);
/// Fills elements of any type.
void run(const Arguments<program::Fill>& call);
void run(const Arguments<program::Update>& call);
/// Computes the checksum of elements of any type.
void run(const Arguments<program::Checksum>& call);
void run(const Arguments<program::Norm>& call);
void run(const Arguments<program::NormGradient>& call);
void run(const Arguments<program::Activation>& call);
void run(const Arguments<program::ActivationGradient>& call);
void run(const Arguments<program::Softmax>& call);
void run(const Arguments<program::SoftmaxGradient>& call);
void run(const Arguments<program::Select>& call);
void run(const Arguments<program::Spread>& call);
void run(const Arguments<program::Rows>& call);

/// Converts a row of any floating type to f64.
void widen_row(program::DType type, const std::byte* from, double* to, std::size_t count);
/// Rounds a row to `type` once, to nearest even; fp8 saturates.
void narrow_row(const double* from, program::DType type, std::byte* to, std::size_t count);

}  // namespace isoscale::executor::host
