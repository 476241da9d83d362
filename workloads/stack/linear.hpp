// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/buffers.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads::stack {

/// Says how the GEMMs of a linear layer read their operands: as they are stored, or cast to fp8.
enum class Operands : std::uint8_t { stored, cast };

/// A linear layer on this rank: Y [tokens, outputs] = gain * X [tokens, inputs] * W.
struct Linear {
  Slice weight{}, gradient{};  ///< inputs x outputs
  std::uint64_t place = 0;     ///< offset among the stage's parameters; tells layers apart
  bool weight_stays = true;    ///< weight and fp8 copies are on the device in the whole step
  double gradient_beta = 0;    ///< 1 if the new gradient is added to the present one
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

  /// Computes the rows `rows` of Y. `y` and the addend have only these rows; `x` may have others
  /// too. If operands are cast, the first call for an `x` casts all its rows together, so the calls
  /// for the rows of one `x` must follow one another. The calls for all rows of a pass must follow
  /// one another, too, since they may share a cast weight.
  void forward(const Linear& linear, int microbatch, const Operand& x, const RowRange& rows,
               const Matrix& y, const Addend& addend, InputCopy input_copy = InputCopy::kept);
  /// Makes the copy of the input that backward reads, by casting `x` again. It is for inputs whose
  /// copy forward() did not keep (InputCopy::dropped). Does nothing if operands are not cast, since
  /// backward then reads x itself.
  void keep_input(const Linear& linear, int microbatch, const Operand& x);
  /// Returns rows of dY in the form in which input_gradient() and weight_gradient() read them. When
  /// both have been called, the caller must release() the result.
  [[nodiscard]] Operand gradient(const Linear& linear, const Operand& dy);
  void release(const Operand& gradient);
  /// Writes the rows `rows` of dX = gain * dY * W^T + addend, which are the matrix `dx`. The calls
  /// for all rows of a pass must follow one another.
  void input_gradient(const Linear& linear, const Operand& dy, const RowRange& rows,
                      const Matrix& dx, const Addend& addend);
  /// Writes dW = gain * X^T * dY + gradient_beta * dW. If X or dY is given in several blocks of
  /// rows, dW is a sum over these blocks; the other one must be a single block. If forward has cast
  /// X, `x` is not read and may have been released.
  void weight_gradient(const Linear& linear, int microbatch, const std::vector<Operand>& x,
                       const std::vector<Operand>& dy);

  /// Returns the product Y = gain * X * W + addend for any number of rows and for operands that are
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
  /// Returns the cast weight with at least the copy that a GEMM reads. used_weight() must follow
  /// it.
  [[nodiscard]] Operand weight(const Linear& linear, Copy copy);
  /// Notes that a GEMM has multiplied `rows` rows by the weight. After all rows of a pass, releases
  /// the copy of a weight that does not stay on the device.
  void used_weight(const Linear& linear, std::uint64_t rows);
  void release(const Matrix& copy);

  std::map<std::uint64_t, Operand> weights_;  ///< casts of this step, by Linear::place
  Shared moving_weight_;                      ///< fetched weight of the pass that is being written
  Shared input_;                              ///< rows of X for which forward() is being called
  /// Cast blocks of rows of X that weight_gradient() will read, by Linear::place and microbatch.
  std::map<std::pair<std::uint64_t, int>, std::vector<Operand>> inputs_;
};

/// An activation [tokens, hidden] whose rows have been gathered from all ranks of the tp group.
struct GatheredRows {
  std::vector<Operand> blocks;  ///< in the order in which they arrive
  std::vector<Operand> pieces;  ///< the same rows, in as few contiguous pieces as possible
  BufferId received = no_buffer;
};

/// A sum over the tp group. If it has an addend, TensorRows::close() must still add it.
struct RowSum {
  BufferId out = no_buffer;
  BufferId addend = no_buffer;
  [[nodiscard]] bool is_open() const { return addend != no_buffer; }
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

/// Gathers the rows of all ranks before a pair of GEMMs, and sums and scatters them after it, for
/// sequence parallelism (Korthikanti et al., arXiv 2205.05198, section 4.2.2). Without sequence
/// parallelism every rank has all rows, and they are summed by an all-reduce. Rows are sent in
/// parts, so that one part is sent while another is multiplied. A part is one of `chunks`
/// collectives, or one step of a ring (Wang et al., ASPLOS 2023, "Overlap communication with
/// dependent computation via decomposition").
class TensorRows : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Gathers all rows from the [shard_tokens, hidden] of each rank; without sequence parallelism
  /// every rank has them. The result may refer to `shard`, so release the result before `shard`.
  [[nodiscard]] GatheredRows gather(BufferId shard);
  void release(const GatheredRows& rows);

  /// Writes the GEMM of some rows, plus the addend, into `d`.
  using Product = std::function<void(const RowRange& rows, const Matrix& d, const Addend& addend)>;
  /// Says whether the ops that are written after a sum can hide its communication.
  enum class Hiding : std::uint8_t { impossible, possible };
  /// Writes the ops that compute, in `out`, the sum of `product` over the tp group, plus `residual`
  /// once, for the rows that this rank keeps. `out` is a new buffer for these rows; `residual` may
  /// be no_buffer. The result is complete only after close(). Ops on the compute stream that are
  /// written between reduce() and close() hide the communication. An all-reduce in one chunk is
  /// hidden only if `hiding` is possible; otherwise it is itself on the compute stream.
  [[nodiscard]] RowSum reduce(const Product& product, BufferId out, BufferId residual,
                              Hiding hiding = Hiding::impossible);
  void close(const RowSum& sum);

 private:
  [[nodiscard]] GatheredRows gather_ring(BufferId shard);
  /// Returns the rows `rows` of an activation, which are all elements of `in`, as GEMMs read them.
  [[nodiscard]] Operand block_of(const Slice& in, const RowRange& rows) const;
  [[nodiscard]] RowSum all_reduce(const Product& product, BufferId out, BufferId residual,
                                  Hiding hiding);
  [[nodiscard]] RowSum reduce_scatter(const Product& product, BufferId out, BufferId residual);
  [[nodiscard]] RowSum reduce_ring(const Product& product, BufferId out, BufferId residual);
  [[nodiscard]] BufferId new_rows(std::uint64_t rows) { return new_buffer(rows * g_.hidden); }
  /// Returns `rows` rows, from row `first` on, of a buffer [.., hidden].
  [[nodiscard]] Slice rows_in(BufferId buffer, std::uint64_t first, std::uint64_t rows) const;
  [[nodiscard]] Matrix matrix_of(BufferId buffer) const;
  void add(BufferId into, BufferId addend);
};

/// Writes attention of a rank's queries to the keys and values of the whole sequence, of which
/// every rank of the cp axis has a part. Blocks of keys, and then of values, are sent around the
/// ring of ranks while GEMMs use the blocks that have arrived (Liu et al., arXiv 2310.01889). A
/// block has the keys, or the values, of one rank, [s][sample][head][d]. Block i on rank r comes
/// from rank r - i, so that all ranks can share one program. A row of scores has all blocks side by
/// side, [block] [s], so that ops on whole rows find them contiguous. The order of the blocks may
/// differ between ranks, since sums over a row do not depend on it. Without cp there is one block,
/// which is read from QKV without a copy.
///
/// A batch of products covers all pairs of sample and key-value head, with one stride. The `j`-th
/// query heads of all key-value heads form one batch.
class Attention : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Writes the scores Q * K^T / sqrt(d) and, with elementwise work, their softmax in their place.
  void scores(BufferId qkv, BufferId scores);
  /// Writes context = scale * scores * V. The scale is 1 with elementwise work, otherwise
  /// 1/sqrt(s + s^2/hidden) for a sequence of s positions.
  void context(BufferId qkv, BufferId scores, BufferId context);
  /// The buffers that backward reads, and d_scores and d_qkv, which it writes.
  struct Backward {
    BufferId qkv, scores, d_context, d_scores, d_qkv;
  };
  void backward(const Backward& of);

  /// Returns the number of products in a batch.
  [[nodiscard]] std::uint64_t batch() const { return g_.microbatch * g_.kv_heads; }

 private:
  enum class Part : std::uint8_t { key, value };
  /// Returns a matrix for query head j, with one row for each query: the queries themselves, or the
  /// gradients of their contexts.
  using Rows = std::function<Matrix(std::uint64_t j)>;

  void backward_on_ring(const Backward& of);
  void softmax(BufferId scores);
  void softmax_gradient(BufferId probabilities, BufferId gradient);

  [[nodiscard]] BufferId new_block() { return new_buffer(g_.sequence * batch() * g_.head_size); }
  /// Returns a new block with this rank's keys or values.
  [[nodiscard]] BufferId pack(BufferId qkv, Part part);
  /// Sends a block to the next rank, and returns the block that comes from the previous rank.
  [[nodiscard]] BufferId pass_on(BufferId block);
  /// Calls visit(i, matrix) with each block. While one block is used, the next one is being
  /// received.
  template <class Visit>
  void for_each_block(BufferId qkv, Part part, const Visit& visit);

  // The functions below return views of buffers, with one matrix for each product of a batch.
  /// Returns column block `index` of each key-value head, which has `blocks_per_head` blocks of
  /// head_size columns. Consecutive positions are `row_stride` elements apart.
  [[nodiscard]] Matrix heads_of(BufferId buffer, std::uint64_t row_stride, std::uint64_t index,
                                std::uint64_t blocks_per_head) const;
  [[nodiscard]] Matrix block_of(BufferId packed) const {
    return heads_of(packed, batch() * g_.head_size, 0, 1);
  }
  /// Returns column block `index` of each key-value head. The blocks of a key-value head are its
  /// query heads, then its key, then its value.
  [[nodiscard]] Matrix column(BufferId qkv, std::uint64_t index) const {
    return heads_of(qkv, g_.microbatch * g_.qkv, index, g_.grouped + 2);
  }
  [[nodiscard]] Matrix query(BufferId qkv, std::uint64_t j) const { return column(qkv, j); }
  [[nodiscard]] Matrix own(BufferId qkv, Part part) const;
  [[nodiscard]] Matrix scores_of(BufferId scores, int block, std::uint64_t j) const;
  [[nodiscard]] Matrix context_of(BufferId context, std::uint64_t j) const {
    return heads_of(context, g_.microbatch * g_.context, j, g_.grouped);
  }

  /// Writes d = scale * a * b + beta * c for each product of a batch; `form` has the extents, the
  /// transposes, beta and c.
  void emit(Gemm form, double scale, const Matrix& a, const Matrix& b, const Matrix& d);
  /// Writes scores = scale * rows * others^T for one block and query head.
  void multiply(const Matrix& rows, const Matrix& others, double scale, const Matrix& scores);
  /// Adds scale * scores * rows for block number `block` to the result. Block 0, which is the first
  /// one, overwrites the result instead.
  void weigh(const Matrix& scores, const Matrix& rows, double scale, int block,
             const Matrix& result);
  /// Adds scale * scores^T * rows for query head j to `gradient`. The sum over query heads begins,
  /// for j = 0, with the gradient in `arrived`, or with 0 if that is no_buffer.
  void add_gradient(const Matrix& scores, const Matrix& rows, double scale, std::uint64_t j,
                    BufferId arrived, const Matrix& gradient);
  /// Calls add_gradient() for every query head of a group, so that `gradient` gets their sum.
  void block_gradient(BufferId scores, int block, const Rows& rows, double scale, BufferId arrived,
                      const Matrix& gradient);
  /// Adds this rank's contribution to the gradient of a block, which is in `arrived` (or 0, if that
  /// is no_buffer), and sends the sum to the next rank. Returns the sum that arrives from the
  /// previous rank.
  [[nodiscard]] BufferId pass_gradient(BufferId scores, int block, const Rows& rows, double scale,
                                       BufferId arrived);
};

}  // namespace isoscale::workloads::stack
