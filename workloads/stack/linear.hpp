// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/matrices_and_op_writer.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::workloads::stack {

/// Says how the GEMMs of a linear layer read their operands: as they are stored, or cast to fp8.
enum class Operands : std::uint8_t { stored, cast };

/// A linear layer on this rank: Y [tokens, outputs] = gain * X [tokens, inputs] * W.
struct Linear {
  Slice weight{}, gradient{};  ///< inputs x outputs
  std::uint64_t place = 0;     ///< offset among the stage's parameters; tells layers apart
  bool weight_stays = true;    ///< weight and fp8 copies stay on the device for the whole step
  double gradient_beta = 0;    ///< 1 adds the new gradient to the present one, 0 replaces it
  std::uint64_t inputs = 0, outputs = 0;
  double gain = 1;
  Operands operands = Operands::stored;
};

/// Says whether forward keeps the cast copy of a linear layer's input that backward reads.
enum class InputCopy : std::uint8_t { kept, dropped };

/// The addend of a product: beta * c.
struct Addend {
  double beta = 0;
  Matrix c{};
};

/// Consecutive rows of a matrix: `first` ... first + count - 1.
struct RowRange {
  std::uint64_t first = 0, count = 0;
};

/// A weight, or some rows of an activation, as GEMMs read it. Without a transposed copy, GEMMs
/// transpose the plain one while they read it.
struct Operand {
  Matrix plain{}, transposed{};
  BufferId descale = no_buffer;  ///< factor that undoes the scale of a cast operand
  RowRange rows{};
};

/// Writes the three GEMMs of linear layers on the compute stream. A GEMM may multiply only some
/// rows of an activation, such as those that have arrived from other ranks.
///
/// Cast operands follow NVIDIA's Transformer Engine: e4m3 forward, e5m2 for gradients, one scale
/// per tensor and rank, which is measured when the tensor is cast. Rows that arrive in several
/// blocks are cast block by block, each with a scale of its own, so that a block is multiplied
/// while the next one arrives. On Ada and Hopper, cuBLASLt multiplies fp8 only when both operands
/// are contiguous along k. So every operand that two GEMMs read is written twice, plain and
/// transposed (on newer GPUs, too):
///   Y = X * (W')^T,   dX = dY * W^T,   dW = X' * (dY')^T,
/// where ' marks the transposed copy, and ^T a transpose that the GEMM does while it reads. A
/// weight that stays on the device is cast once a step. A weight that is fetched for each use
/// (zero=3, offload=weights) is cast just before the first GEMM of a pass, and only into the copy
/// that the GEMMs of this pass read. Backward reads only the transposed copy of X, so only that
/// copy is kept.
class LinearWriter : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Computes the rows `rows` of the layer's output Y. `y` and the addend have only these rows; `x`
  /// may have others too. If operands are cast, the first call for an `x` casts all its rows
  /// together, so the calls for the rows of one `x` must follow one another. The calls for all rows
  /// of a pass must follow one another, too, since they may share a cast weight.
  void forward(const Linear& linear, int microbatch, const Operand& x, const RowRange& rows,
               const Matrix& y, const Addend& addend, InputCopy input_copy = InputCopy::kept);
  /// Makes the copy of the input that backward reads, by casting `x` again. It is for inputs whose
  /// copy forward() did not keep (InputCopy::dropped). Does nothing if operands are not cast, since
  /// backward then reads x itself.
  void keep_input(const Linear& linear, int microbatch, const Operand& x);
  /// Returns rows of the output gradient dY in the form in which input_gradient() and
  /// weight_gradient() read them.
  [[nodiscard]] Operand gradient(const Linear& linear, const Operand& dy);
  /// Writes the rows `rows` of dX = gain * dY * W^T + addend, which are the matrix `dx`. The calls
  /// for all rows of a pass must follow one another.
  void input_gradient(const Linear& linear, const Operand& dy, const RowRange& rows,
                      const Matrix& dx, const Addend& addend);
  /// Writes dW = gain * X^T * dY + gradient_beta * dW. If X or dY is given in several blocks of
  /// rows, dW is a sum over these blocks; the other operand must be a single block. If forward has
  /// cast X, `x` is not read.
  void weight_gradient(const Linear& linear, int microbatch, const std::vector<Operand>& x,
                       const std::vector<Operand>& dy);

  /// Returns the GEMM Y = gain * X * W + addend for any number of rows and for operands that are
  /// not cast.
  [[nodiscard]] Gemm forward_product(const Linear& linear, std::uint64_t rows, const Matrix& x,
                                     const Matrix& y, const Addend& addend) const;

 private:
  struct Destination {
    DType type;
    std::optional<Role> plain, transposed;  ///< role of each copy; absent: no such copy
    int microbatch = -1;
  };
  /// A cast operand that several GEMMs read, and the number of rows that they have multiplied.
  struct Shared {
    Operand operand{};
    std::uint64_t multiplied = 0;
  };
  [[nodiscard]] Operand cast(const Operand& src, std::uint64_t columns, const Destination& to);
  enum class Copy : std::uint8_t { plain, transposed };
  /// Returns the cast weight with at least the copy that a GEMM reads. The caller must call
  /// used_weight() after the GEMM.
  [[nodiscard]] Operand weight(const Linear& linear, Copy copy);
  /// Notes that a GEMM has multiplied `rows` rows by the weight. After all rows of a pass, forgets
  /// the copy of a weight that does not stay on the device.
  void used_weight(const Linear& linear, std::uint64_t rows);

  std::map<std::uint64_t, Operand> weights_;  ///< cast weights of this step, by Linear::place
  Shared moving_weight_;                      ///< fetched weight of the pass that is being written
  Shared input_;                              ///< rows of X for which forward() is being called
  /// Cast blocks of rows of X that weight_gradient() will read, by Linear::place and microbatch.
  std::map<std::pair<std::uint64_t, int>, std::vector<Operand>> inputs_;
};

/// Consecutive positions of a sequence, or of a rank's part of a sequence.
struct Positions {
  std::uint64_t first = 0, count = 0;
};

/// Returns the positions of the part of the sequence that a tp group has, in their order between
/// the two GEMMs of a pair. Without sequence_parallel they are ascending. With sequence_parallel
/// they are in the order in which they arrive: in chunks, [chunk][rank]; on a ring, first the
/// rank's own positions, then those of the ranks before it. They are not sorted then, since the
/// results of a layer do not depend on their order.
[[nodiscard]] std::vector<Positions> inner_positions(const Geometry& geometry);

}  // namespace isoscale::workloads::stack
