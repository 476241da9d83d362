// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// This file writes the pair of GEMMs that tensor parallelism splits. The first GEMM is
// column-parallel. The second one is row-parallel with an all-reduce (Shoeybi et al., arXiv
// 1909.08053, section 3), or column-parallel with all-gathers of its input and output. Sequence
// parallelism sums by a reduce-scatter or on a ring instead of the all-reduce.

#include <functional>

#include "workloads/stack/layer.hpp"

namespace isoscale::workloads::stack {

namespace {

/// An activation [tokens, hidden] whose rows have been gathered from all ranks of the tp group.
struct GatheredRows {
  std::vector<Operand> blocks;  ///< blocks of rows, in the order in which they arrive
  std::vector<Operand> pieces;  ///< the same rows, in as few contiguous pieces as possible
};

/// Gathers the rows of all ranks before a pair of GEMMs, and sums and scatters them after it, for
/// sequence parallelism (Korthikanti et al., arXiv 2205.05198, section 4.2.2). Without sequence
/// parallelism every rank has all rows, and they are summed by an all-reduce. Rows are sent in
/// parts, so that one part is sent while another is multiplied. A part is one of `chunks`
/// collectives, or one step of a ring (Wang et al., ASPLOS 2023, "Overlap communication with
/// dependent computation via decomposition").
class TensorRows : public OpWriter {
 public:
  using OpWriter::OpWriter;

  /// Gathers the rows [shard_tokens, hidden] of all ranks; without sequence parallelism every rank
  /// already has all rows. The result may refer to `shard`.
  [[nodiscard]] GatheredRows gather(BufferId shard) {
    if (!g_.sequence_parallel) {
      const Operand whole = block_of(builder_.whole(shard), {.count = g_.tokens});
      return {.blocks = {whole}, .pieces = {whole}};
    }
    if (g_.ring) return gather_ring(shard);
    const std::uint64_t sent = g_.shard_tokens / g_.chunks, rows = g_.tokens / g_.chunks;
    const BufferId received = new_rows(g_.tokens);
    GatheredRows result;
    for (std::uint64_t chunk = 0; chunk < g_.chunks; ++chunk) {
      const Slice block = rows_in(received, chunk * rows, rows);
      communicate(builder_, builder_.stream("tp"), CollectiveKind::all_gather, mesh::Axis::tp,
                  rows_in(shard, chunk * sent, sent), block);
      result.blocks.push_back(block_of(block, {.first = chunk * rows, .count = rows}));
    }
    result.pieces = {block_of(builder_.whole(received), {.count = g_.tokens})};
    return result;
  }

  /// Writes the GEMM of some rows, plus the addend, into `d`.
  using Product = std::function<void(const RowRange& rows, const Matrix& d, const Addend& addend)>;
  /// Says whether the ops that are written after a sum can hide its communication.
  enum class Hiding : std::uint8_t { impossible, possible };
  /// Writes the ops that store in `out` the sum of `product` over the tp group, for the rows that
  /// this rank keeps, with `residual` added once. `out` is a new buffer for these rows; `residual`
  /// may be no_buffer. Returns the addend that close() must still add, or no_buffer. Ops on the
  /// compute stream that are written between reduce() and close() hide the communication. An
  /// all-reduce in one chunk is hidden only if `hiding` is possible; otherwise it is on the compute
  /// stream like the GEMMs.
  [[nodiscard]] BufferId reduce(const Product& product, BufferId out, BufferId residual,
                                Hiding hiding = Hiding::impossible) {
    if (!g_.sequence_parallel) return all_reduce(product, out, residual, hiding);
    return g_.ring ? reduce_ring(product, out, residual) : reduce_scatter(product, out, residual);
  }
  void close(BufferId out, BufferId addend) {
    if (addend != no_buffer) add(out, addend);
  }

 private:
  [[nodiscard]] GatheredRows gather_ring(BufferId shard) {
    const std::uint64_t rows = g_.shard_tokens;
    const BufferId received = new_rows(g_.tokens - rows);
    GatheredRows result;
    Slice block = builder_.whole(shard);
    result.blocks = {block_of(block, {.count = rows})};
    for (std::uint64_t first = rows; first < g_.tokens; first += rows) {
      const Slice arriving = rows_in(received, first - rows, rows);
      pass_on(builder_, builder_.stream("tp"), mesh::Axis::tp, block, arriving);
      block = arriving;
      result.blocks.push_back(block_of(block, {.first = first, .count = rows}));
    }
    result.pieces = {result.blocks.front(), block_of(builder_.whole(received),
                                                     {.first = rows, .count = g_.tokens - rows})};
    return result;
  }

  [[nodiscard]] BufferId all_reduce(const Product& product, BufferId out, BufferId residual,
                                    Hiding hiding) {
    const std::uint64_t rows = g_.tokens / g_.chunks;
    // The communication is on a stream of its own if there are GEMMs that can hide it: those of
    // other chunks, or those that are written after this sum.
    const bool overlaps = g_.chunks > 1 || hiding == Hiding::possible;
    const StreamId stream = overlaps ? builder_.stream("tp") : StreamId{0};
    for (std::uint64_t first = 0; first < g_.tokens; first += rows) {
      Addend addend;
      if (residual != no_buffer) {  // each rank adds 1/tp of the residual
        addend = {.beta = 1.0 / g_.tp, .c = rows_of(matrix_of(residual), first, rows, g_.hidden)};
      }
      product({first, rows}, rows_of(matrix_of(out), first, rows, g_.hidden), addend);
      if (g_.tp == 1) continue;
      communicate(builder_, stream, CollectiveKind::all_reduce, mesh::Axis::tp,
                  rows_in(out, first, rows), rows_in(out, first, rows));
    }
    return no_buffer;
  }

  [[nodiscard]] BufferId reduce_scatter(const Product& product, BufferId out, BufferId residual) {
    const std::uint64_t rows = g_.tokens / g_.chunks, kept = g_.shard_tokens / g_.chunks;
    const BufferId partial = new_rows(g_.tokens);
    for (std::uint64_t chunk = 0; chunk < g_.chunks; ++chunk) {
      product({chunk * rows, rows}, rows_of(matrix_of(partial), chunk * rows, rows, g_.hidden), {});
      communicate(builder_, builder_.stream("tp"), CollectiveKind::reduce_scatter, mesh::Axis::tp,
                  rows_in(partial, chunk * rows, rows), rows_in(out, chunk * kept, kept));
    }
    return residual;
  }

  [[nodiscard]] BufferId reduce_ring(const Product& product, BufferId out, BufferId residual) {
    // The partial sum of a rank's rows starts on the next rank, is sent around the ring, and is
    // completed on the rank itself. So blocks are multiplied in the order in which gather_ring()
    // received them, except that the rank's own block, which comes first in gather_ring(), comes
    // last here.
    const std::uint64_t rows = g_.shard_tokens;
    BufferId arrived = no_buffer;
    for (std::uint64_t first = rows; first < g_.tokens; first += rows) {
      const BufferId mine = new_rows(rows);
      product({first, rows}, matrix_of(mine), {});
      if (arrived != no_buffer) add(mine, arrived);
      arrived = new_rows(rows);
      pass_on(builder_, builder_.stream("tp"), mesh::Axis::tp, builder_.whole(mine),
              builder_.whole(arrived));
    }
    Addend addend;
    if (residual != no_buffer) addend = {.beta = 1, .c = matrix_of(residual)};
    product({0, rows}, matrix_of(out), addend);
    return arrived;
  }

  void add(BufferId into, BufferId addend) {
    builder_.emit(0, Add{.rows = extent(g_.shard_tokens),
                         .columns = extent(g_.hidden),
                         .a = matrix_of(into),
                         .b = matrix_of(addend),
                         .dst = matrix_of(into)});
  }

  /// Returns `in`, which has the rows `rows` of an activation, as an operand of GEMMs.
  [[nodiscard]] Operand block_of(const Slice& in, const RowRange& rows) const {
    return {.plain = dense(in, rows.count, g_.hidden), .rows = rows};
  }
  [[nodiscard]] BufferId new_rows(std::uint64_t rows) { return new_buffer(rows * g_.hidden); }
  /// Returns `rows` rows, from row `first` on, of a buffer [.., hidden].
  [[nodiscard]] Slice rows_in(BufferId buffer, std::uint64_t first, std::uint64_t rows) const {
    return {.buffer = buffer, .offset = first * g_.hidden, .count = rows * g_.hidden};
  }
  [[nodiscard]] Matrix matrix_of(BufferId buffer) const {
    return dense(buffer, builder_.buffer(buffer).count / g_.hidden, g_.hidden);
  }
};

}  // namespace

void LayerWriter::first_forward(const Linear& linear, BufferId in, BufferId out, int microbatch,
                                InputCopy input_copy) {
  const Matrix y = dense(out, g_.tokens, linear.outputs);
  TensorRows tp_rows{builder_, g_, types_};
  const GatheredRows x = tp_rows.gather(in);
  for (const Operand& block : x.blocks) {
    const auto& [first, count] = block.rows;
    linear_.forward(linear, microbatch, block, block.rows, rows_of(y, first, count, linear.outputs),
                    {}, input_copy);
  }
}

BufferId LayerWriter::second_forward(const Linear& linear, BufferId in, BufferId residual,
                                     int microbatch, KeptFor output_for, InputCopy input_copy) {
  const Operand x = all_rows(in, linear.inputs);
  if (!g_.gathers()) {
    const auto product = [&](const RowRange& rows, const Matrix& d, const Addend& addend) {
      linear_.forward(linear, microbatch, x, rows, d, addend, input_copy);
    };
    TensorRows tp_rows{builder_, g_, types_};
    const BufferId out = new_buffer(g_.activation(), output_for);
    tp_rows.close(out, tp_rows.reduce(product, out, residual));
    return out;
  }
  const std::uint64_t mine = linear.outputs;
  const BufferId part = new_buffer(g_.tokens * mine);
  linear_.forward(linear, microbatch, x, x.rows, dense(part, g_.tokens, mine),
                  {.beta = 1, .c = own_columns(residual, mine)}, input_copy);
  return gather_columns(part, mine, output_for);
}

BufferId LayerWriter::second_backward(int layer, const Linear& linear, BufferId in, BufferId d_out,
                                      int microbatch) {
  TensorRows tp_rows{builder_, g_, types_};
  GatheredRows rows = tp_rows.gather(d_out);
  if (g_.gathers()) {
    rows.blocks.front().plain = own_columns(d_out, linear.outputs);
    rows.pieces = rows.blocks;
  }
  BufferId d_in = new_buffer(g_.tokens * linear.inputs);
  const Matrix dx = dense(d_in, g_.tokens, linear.inputs);
  std::vector<Operand> gradients;
  for (const Operand& block : rows.blocks) {
    gradients.push_back(linear_.gradient(linear, block));
    linear_.input_gradient(linear, gradients.back(), block.rows,
                           rows_of(dx, block.rows.first, block.rows.count, linear.inputs), {});
  }
  if (g_.gathers()) {
    d_in = scatter_columns(d_in, linear.inputs / static_cast<std::uint64_t>(g_.tp));
  }
  after_weight_gradients(layer, microbatch, [=, this] {
    linear_.weight_gradient(with_gradient(linear, microbatch), microbatch,
                            {all_rows(in, linear.inputs)},
                            linear.operands == Operands::cast ? gradients : rows.pieces);
    gradients_.done(linear.gradient, microbatch);
  });
  return d_in;
}

BufferId LayerWriter::first_backward(const First& first, const Operand& d_out, BufferId residual,
                                     InputGradient order) {
  const int layer = first.layer, microbatch = first.microbatch;
  const Linear& linear = first.linear;
  const BufferId in = first.in;
  // The weight gradient reads all rows of the input. If operands are cast, forward kept the cast
  // copies of all rows. Otherwise forward kept only this rank's rows, and the rows of all ranks are
  // gathered again: here or, if the weight gradient is put off, just before it.
  const bool gathers_input = linear.operands == Operands::stored;
  TensorRows tp_rows{builder_, g_, types_};
  std::optional<GatheredRows> all;
  if (gathers_input && !puts_off_) all = tp_rows.gather(in);
  const auto weights = [=, this]() mutable {
    GatheredRows rows;
    if (gathers_input) rows = all ? *all : tp_rows.gather(in);
    linear_.weight_gradient(with_gradient(linear, microbatch), microbatch, rows.pieces, {d_out});
    gradients_.done(linear.gradient, microbatch);
  };
  if (order == InputGradient::last) after_weight_gradients(layer, microbatch, weights);
  const BufferId d_in = new_buffer(g_.activation());
  const auto product = [&](const RowRange& rows, const Matrix& d, const Addend& addend) {
    linear_.input_gradient(linear, d_out, rows, d, addend);
  };
  // The weight gradient, if it is written next, can hide the sum of the input gradient over tp.
  const bool hides = g_.async_reduce && !puts_off_ && order == InputGradient::first;
  const BufferId addend =
      tp_rows.reduce(product, d_in, residual,
                     hides ? TensorRows::Hiding::possible : TensorRows::Hiding::impossible);
  if (puts_off_) tp_rows.close(d_in, addend);
  if (order == InputGradient::first) after_weight_gradients(layer, microbatch, weights);
  if (!puts_off_) tp_rows.close(d_in, addend);  // the weight gradient hides the communication
  return d_in;
}

Matrix LayerWriter::own_columns(BufferId buffer, std::uint64_t columns) const {
  return matrix(
      builder_.whole(buffer),
      {.rows = g_.tokens, .columns = columns, .row_stride = g_.hidden, .tp_step = columns});
}

Matrix LayerWriter::columns_of_ranks(BufferId buffer, std::uint64_t columns, Order order) const {
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const bool by_rank = order == Order::by_rank;
  return matrix(builder_.whole(buffer), {.rows = g_.tokens,
                                         .columns = columns,
                                         .row_stride = by_rank ? columns : columns * tp,
                                         .batch = tp,
                                         .batch_stride = by_rank ? g_.tokens * columns : columns});
}

BufferId LayerWriter::gather_columns(BufferId part, std::uint64_t columns, KeptFor kept) {
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const BufferId blocks = new_buffer(g_.tokens * columns * tp);
  communicate(builder_, 0, CollectiveKind::all_gather, mesh::Axis::tp, builder_.whole(part),
              builder_.whole(blocks));
  const BufferId out = new_buffer(g_.tokens * columns * tp, kept);
  copy(builder_, 0, g_.tokens, columns, columns_of_ranks(blocks, columns, Order::by_rank),
       columns_of_ranks(out, columns, Order::side_by_side), tp);
  return out;
}

BufferId LayerWriter::scatter_columns(BufferId partial, std::uint64_t columns) {
  const auto tp = static_cast<std::uint64_t>(g_.tp);
  const BufferId blocks = new_buffer(g_.tokens * columns * tp);
  copy(builder_, 0, g_.tokens, columns, columns_of_ranks(partial, columns, Order::side_by_side),
       columns_of_ranks(blocks, columns, Order::by_rank), tp);
  const BufferId mine = new_buffer(g_.tokens * columns);
  communicate(builder_, 0, CollectiveKind::reduce_scatter, mesh::Axis::tp, builder_.whole(blocks),
              builder_.whole(mine));
  return mine;
}

std::vector<Positions> inner_positions(const Geometry& g) {
  if (!g.sequence_parallel) return {{.first = 0, .count = g.sequence}};
  const auto tp = static_cast<std::uint64_t>(g.tp);
  const std::uint64_t part = g.sequence / tp;  // positions per rank of the tp group
  std::vector<Positions> result;
  if (g.ring) {
    const auto mine = static_cast<std::uint64_t>(g.at.tp);
    for (std::uint64_t i = 0; i < tp; ++i) {
      result.push_back({.first = (mine + tp - i) % tp * part, .count = part});
    }
    return result;
  }
  const std::uint64_t each = part / g.chunks;
  for (std::uint64_t chunk = 0; chunk < g.chunks; ++chunk) {
    for (std::uint64_t rank = 0; rank < tp; ++rank) {
      result.push_back({.first = rank * part + chunk * each, .count = each});
    }
  }
  return result;
}

}  // namespace isoscale::workloads::stack
