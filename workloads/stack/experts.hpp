// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/matrices_and_op_writer.hpp"
#include "workloads/stack/partitioning.hpp"
#include "workloads/stack/training_state_buffers.hpp"

namespace isoscale::workloads::stack {

// The experts of each token are drawn when a program is built. With the same options they depend
// only on seed, layer, sample and position, so routing is the same on every mesh.

/// Stands for an expert in a token's list of experts if that expert was full. The token is not sent
/// to it ("dropped").
inline constexpr std::uint32_t no_expert = ~std::uint32_t{0};

struct Routing {
  std::uint32_t experts = 0;  ///< experts of a layer, on all ranks; 0 = a dense MLP
  std::uint32_t topk = 1;     ///< experts of each token
  /// The most tokens of one sample that an expert accepts; 0 = no limit.
  std::uint64_t capacity = 0;
  std::uint64_t sequence = 0;  ///< positions of a sample
  /// The exponent of Zipf's law: the r-th most popular expert of a layer is drawn with a
  /// probability proportional to 1/r^exponent; 0 = tokens are distributed evenly.
  double exponent = 0;
  std::uint64_t seed = 0;

  [[nodiscard]] bool has_experts() const { return experts > 0; }
};
[[nodiscard]] Routing routing_of(const Request& request);

/// Returns `topk` different experts for each position of a sample. If an expert is full, no_expert
/// stands in its place. Earlier positions are assigned first.
[[nodiscard]] std::vector<std::uint32_t> route(const Routing& routing, int layer,
                                               std::uint64_t sample);

/// The effects of routing on a step, for all ranks and layers together.
struct RouteStats {
  std::uint64_t routed = 0;   ///< tokens x topk
  std::uint64_t dropped = 0;  ///< those of `routed` whose expert was full
  std::uint64_t padded = 0;   ///< rows of zeros that are added as padding and multiplied too
  /// The most rows of a rank in a layer, divided by the mean of all ranks and layers. Padding does
  /// not count. Ranks that differ only along cp count as one.
  double imbalance = 1;
};
/// Returns the effects of routing. `request` must have been scaled to its mesh.
[[nodiscard]] RouteStats route_stats(const Request& request);

/// Describes, for one rank, layer and microbatch, which tokens are sent to which experts and how
/// they come back. An activation has one row for each token, ordered [position][sample]. A token is
/// sent once to each of its experts that is not full.
struct Dispatch {
  /// For each row that is sent, the index of its token in the activation. Rows are sorted by
  /// expert, then by token.
  std::vector<std::uint32_t> sent_from;
  /// For each token, the indices of its topk rows among the rows sent; program::Rows::no_row if
  /// dropped.
  std::vector<std::uint32_t> place_of;
  /// The number of rows sent to, and received from, each member of the ep group.
  std::vector<std::uint64_t> sent, received;
  /// For each row of the experts' input, its index among the rows received; no_row for padding.
  /// Rows are sorted by expert. Empty if expert_batch=exact and there is one rank along ep, or one
  /// expert on each rank: the rows received are then already in this order.
  std::vector<std::uint32_t> arranged_from;
  /// For each row received, its index in the experts' output; the inverse of arranged_from. Empty
  /// if arranged_from is.
  std::vector<std::uint32_t> restored_from;
  /// The number of rows of each expert on this rank, with padding.
  std::vector<std::uint64_t> rows_of_expert;

  [[nodiscard]] std::uint64_t received_rows() const;
  [[nodiscard]] std::uint64_t expert_rows() const;
};

/// Returns the dispatch of a microbatch in a layer; `layer` counts from the first layer of the
/// whole model. The geometry must be made for this rank's coordinates along cp, ep and dp.
[[nodiscard]] Dispatch dispatch(const Routing& routing, const Geometry& geometry, int layer,
                                int microbatch);

/// Writes, on the compute stream, a layer of experts, which replaces the MLP if the model has
/// experts (Shazeer et al., arXiv 1701.06538; Lepikhin et al., arXiv 2006.16668):
///   Z = g / topk * sum over the experts e of a token (inner(Y * Wup_e) * Wdown_e) + Y,
/// with g and inner() as in LayerWriter. Rows are sent to the ranks of their experts along ep and
/// back. Each expert's width is split over tp like that of an MLP, and activations are summed over
/// tp after rows have come back.
class ExpertWriter : public OpWriter {
 public:
  using GradientDone = std::function<void(const Slice&)>;
  /// Accepts a function that writes ops. Calls it at once or, if weight gradients are put off, when
  /// the layer's weight gradients are written (LayerWriter::after_weight_gradients()).
  using Later = std::function<void(std::function<void()>)>;

  ExpertWriter(Builder& builder, const Geometry& geometry, const Types& types,
               const Parameters& parameters, const Request& request, GradientDone gradient_done);

  [[nodiscard]] bool has_experts() const { return routing_.has_experts(); }
  /// Computes the output Z from the input Y [tokens, h], in a new buffer. `output_for` is the
  /// microbatch whose backward pass reads the output.
  [[nodiscard]] BufferId forward(int layer, int microbatch, BufferId input, KeptFor output_for);
  /// Computes dY, the gradient of the input, from dZ [tokens, h], in a new buffer. The weight
  /// gradients that `later` defers do not read dZ.
  [[nodiscard]] BufferId backward(int layer, int microbatch, BufferId gradient, const Later& later);

 private:
  /// The data that forward keeps for backward. Buffers are no_buffer if this rank's experts have no
  /// rows, not even padding.
  struct State {
    Dispatch dispatch;
    BufferId input = no_buffer;  ///< [rows of the experts, h]
    BufferId inner = no_buffer;  ///< [rows of the experts, ffn]
  };
  /// A matrix of `rows` x `columns` for each expert of this rank: its weights or their gradients.
  struct Weights {
    std::vector<Slice> of_expert;  ///< one slice for each expert, one after another in memory
    std::uint64_t rows = 0, columns = 0;

    /// Returns the matrices of `batch` experts, beginning with number `expert`.
    [[nodiscard]] Matrix matrices(std::size_t expert, std::uint64_t batch) const {
      return matrix(of_expert[expert], {.rows = rows,
                                        .columns = columns,
                                        .row_stride = columns,
                                        .batch = batch,
                                        .batch_stride = rows * columns});
    }
  };

  enum class Of : std::uint8_t { weights, gradients };
  [[nodiscard]] Weights weights(int layer, Tensor tensor, Of which = Of::weights) const;
  [[nodiscard]] std::uint64_t up_columns() const { return g_.up_parts * g_.ffn; }

  /// Multiplies the rows of this rank's tokens by `scale`, and sends each to the ranks of its
  /// experts. Returns the rows that this rank's experts multiply, which are the received rows and
  /// padding, sorted by expert; no_buffer if there are none.
  [[nodiscard]] BufferId bring(const Dispatch& way, BufferId tokens, double scale,
                               KeptFor kept = std::nullopt);
  /// The reverse of bring(): sends rows back, and returns for each token the sum over its experts,
  /// multiplied by `scale`.
  [[nodiscard]] BufferId take_back(const Dispatch& way, BufferId rows, double scale,
                                   KeptFor kept = std::nullopt);
  [[nodiscard]] BufferId moved(const std::vector<std::uint32_t>& from, std::uint32_t each,
                               double scale, BufferId src, KeptFor kept = std::nullopt);
  [[nodiscard]] BufferId exchanged(const std::vector<std::uint64_t>& sent,
                                   const std::vector<std::uint64_t>& received, BufferId src,
                                   KeptFor kept = std::nullopt);
  [[nodiscard]] BufferId zeros(std::uint64_t rows, KeptFor kept);
  /// Writes dst += residual / tp, and then sums dst over tp.
  void add_residual(BufferId dst, BufferId residual);

  /// Writes y = alpha * x * W (or W^T) for every expert that has rows.
  void multiply(const Dispatch& way, const Weights& weights, Transpose transpose, double alpha,
                BufferId x, BufferId y);
  /// Writes dW += alpha * x^T * dy for every expert that has rows, or dW = alpha * x^T * dy if no
  /// row has contributed to dW before. In the last microbatch, each dW to which no row contributed
  /// is filled with zeros, and gradient_done_ is called for every dW.
  void accumulate(const Dispatch& way, int layer, Tensor tensor, int microbatch, double alpha,
                  BufferId x, BufferId dy);

  const Parameters& parameters_;
  GradientDone gradient_done_;
  Routing routing_;
  std::map<std::pair<int, int>, State> kept_;  ///< by (layer, microbatch)
  std::map<std::uint64_t, bool> begun_;  ///< by a gradient's offset: true if a row has contributed
};

}  // namespace isoscale::workloads::stack
