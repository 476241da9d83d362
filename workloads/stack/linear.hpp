// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "program/builder.hpp"
#include "workloads/stack/buffers.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads::stack {

/// The form in which the GEMMs of a linear layer read their operands: as they are stored, or cast
/// to fp8.
enum class Operands : std::uint8_t { stored, cast };

/// Rows, columns and row strides of fp8 operands must be multiples of this number (cuBLASLt).
inline constexpr int fp8_multiple = 16;
/// Throws base::UsageError if the linear layers have an extent that fp8 GEMMs cannot have; the
/// message has the number and what to change.
void require_fp8_extents(const Geometry& geometry);

/// A linear layer on this rank: Y [tokens, outputs] = gain * X [tokens, inputs] * W.
struct Linear {
  Slice weight, gradient;    ///< inputs x outputs
  double gradient_beta = 0;  ///< 1 if the new gradient is added to the present one
  std::uint64_t inputs = 0, outputs = 0;
  double gain = 1;
  Operands operands = Operands::stored;
};

/// Says whether forward keeps the copy of a linear layer's input that backward reads.
enum class InputCopy : std::uint8_t { kept, dropped };

/// The addend of a product: beta * c.
struct Addend {
  double beta = 0;
  Matrix c{};
};

/// Writes the three GEMMs of linear layers on the compute stream.
///
/// Cast operands follow NVIDIA's Transformer Engine: e4m3 forward, e5m2 for gradients, one scale
/// per tensor and rank, measured as it is cast. cuBLASLt multiplies fp8 only when both operands are
/// contiguous along k, so every operand that two GEMMs read is written twice, plain and transposed:
///   Y = X * (W^T)^T,   dX = dY * W^T,   dW = X^T * (dY^T)^T,
/// where the operands in brackets are stored so and the outer transpose is the GEMM's. A weight is
/// cast once a step. Of X, only the transposed copy is kept for backward.
class LinearWriter : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// A matrix as GEMMs read it. Without a transposed copy, GEMMs transpose the plain one while they
  /// read it.
  struct Operand {
    Matrix plain{}, transposed{};
    BufferId descale = no_buffer;
  };

  void forward(const Linear& linear, int microbatch, const Matrix& x, const Matrix& y,
               const Addend& addend, InputCopy input_copy = InputCopy::kept);
  /// Keeps the copy of the input that backward reads, if forward dropped it. Does nothing if
  /// operands are read as they are stored, since backward then reads x itself.
  void keep_input(const Linear& linear, int microbatch, const Matrix& x);
  /// Returns dY in the form in which both products below read it. It must be released after them.
  [[nodiscard]] Operand gradient(const Linear& linear, const Matrix& dy);
  void release(const Operand& gradient);
  /// Writes dX = gain * dY * W^T + addend.
  void input_gradient(const Linear& linear, const Operand& dy, const Matrix& dx,
                      const Addend& addend);
  /// Writes dW += gain * X^T * dY. If forward has cast X, `x` is not read and may have been
  /// released.
  void weight_gradient(const Linear& linear, int microbatch, const Matrix& x, const Operand& dy);

  // These functions return the products above for only some rows, of operands as they are stored:
  // Y = gain * X * W + addend, dX = gain * dY * W^T + addend, and dW = gain * X^T * dY + beta * dW.
  [[nodiscard]] Gemm forward_product(const Linear& linear, std::uint64_t rows, const Matrix& x,
                                     const Matrix& y, const Addend& addend) const;
  [[nodiscard]] Gemm input_product(const Linear& linear, std::uint64_t rows, const Matrix& dy,
                                   const Matrix& dx, const Addend& addend) const;
  [[nodiscard]] Gemm weight_product(const Linear& linear, std::uint64_t rows, double beta,
                                    const Matrix& x, const Matrix& dy) const;

 private:
  struct Destination {
    DType type;
    std::optional<Role> plain, transposed;  ///< role of each copy; absent: no such copy
    int microbatch = -1;
  };
  [[nodiscard]] Operand cast(const Matrix& src, std::uint64_t rows, std::uint64_t columns,
                             const Destination& to);
  [[nodiscard]] Operand weight(const Linear& linear);
  void release(const Matrix& copy);

  std::map<std::uint64_t, Operand> weights_;  ///< casts of this step, by offset of the weight
  std::map<std::pair<std::uint64_t, int>, Operand> inputs_;  ///< and by microbatch
};

}  // namespace isoscale::workloads::stack
