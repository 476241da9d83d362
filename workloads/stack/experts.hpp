// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::stack {

// Routing: the experts of each token are drawn when a program is built, as a function of seed,
// layer, sample and position alone, so that every mesh routes alike.

/// This replaces the index of an expert that was full: the token is dropped there.
inline constexpr std::uint32_t no_expert = ~std::uint32_t{0};

struct Routing {
  std::uint32_t experts = 0;  ///< of a layer, over all ranks; 0 = a dense MLP
  std::uint32_t topk = 1;     ///< experts of a token
  /// The most tokens of one sample that an expert takes; 0 = no limit.
  std::uint64_t capacity = 0;
  std::uint64_t sequence = 0;  ///< positions of a sample
  double exponent = 0;  ///< of Zipf's law: the r-th expert of a layer is drawn as 1/r^exponent; 0 =
                        ///< distributed evenly
  std::uint64_t seed = 0;

  [[nodiscard]] bool has_experts() const { return experts > 0; }
};
[[nodiscard]] Routing routing_of(const Request& request);

/// Returns the factor of a capacity, "1.25" or "125%"; 0 for "none" and "0". Throws
/// base::UsageError for other texts.
[[nodiscard]] double capacity_factor(std::string_view text);

/// Returns the experts of each position of a sample, `topk` each, all different; no_expert where
/// one was full. Earlier positions are served first.
[[nodiscard]] std::vector<std::uint32_t> route(const Routing& routing, int layer,
                                               std::uint64_t sample);

/// The effects of routing on a step, over all ranks and layers.
struct RouteStats {
  std::uint64_t routed = 0;   ///< tokens x topk
  std::uint64_t dropped = 0;  ///< of `routed`: their expert was full
  std::uint64_t padded = 0;   ///< rows of zeros that are multiplied in addition
  double imbalance = 1;       ///< rows of the rank that multiplies most, over the mean of all
};
/// Returns the effects of routing for a request that has been scaled.
[[nodiscard]] RouteStats route_stats(const Request& request);

/// Says how the experts of a rank multiply: one GEMM each with its own rows, or one batched GEMM in
/// which each expert has as many rows as the capacity allows.
enum class ExpertBatch : std::uint8_t { exact, padded };

/// The paths of a microbatch's tokens to the experts of one layer and back, on one rank. Rows are
/// tokens as Geometry orders them; a row is sent once for each of its experts that has room.
struct Dispatch {
  /// For each row sent, its row in the activation, by expert and then by token.
  std::vector<std::uint32_t> sent_from;
  /// The topk places of each token among the rows sent; program::Rows::no_row if it was dropped.
  std::vector<std::uint32_t> place_of;
  /// The numbers of rows sent to and received from each member of the ep group.
  std::vector<std::uint64_t> sent, received;
  /// For each row of the experts' input, expert by expert, its row among those received; no_row is
  /// padding. Empty if the input is as received.
  std::vector<std::uint32_t> arranged_from;
  /// The place of each row received in the experts' output, the inverse of arranged_from.
  std::vector<std::uint32_t> restored_from;
  /// The number of rows of each expert of this rank, padding included.
  std::vector<std::uint64_t> rows_of_expert;

  [[nodiscard]] std::uint64_t received_rows() const;
  [[nodiscard]] std::uint64_t expert_rows() const;
};

/// Plans the dispatch of a microbatch. `layer` is the number in the model. The geometry must have
/// its own coordinates along cp, ep and dp.
[[nodiscard]] Dispatch dispatch(const Routing& routing, const Geometry& geometry, ExpertBatch batch,
                                int layer, int microbatch);

/// Writes a layer of experts, which replaces the MLP if the model has experts (Shazeer et al.,
/// arXiv 1701.06538; Lepikhin et al., arXiv 2006.16668), on the compute stream:
///   Z = g / topk * sum over the experts e of a token (inner(Y * Wup_e) * Wdown_e) + Y.
/// Rows are sent to the ranks of their experts along ep and back. Each expert's width is split over
/// tp as the MLP's is: whole activations are summed over tp, after rows have come back.
class ExpertWriter {
 public:
  using GradientDone = std::function<void(const program::Slice&)>;
  /// Takes ops that may be written after the layer's input gradients (LayerWriter).
  using Later = std::function<void(std::function<void()>)>;

  ExpertWriter(program::Builder& builder, const Geometry& geometry, const Types& types,
               const Parameters& parameters, const Request& request, GradientDone gradient_done);

  [[nodiscard]] bool has_experts() const { return routing_.has_experts(); }
  /// Computes Z of Y [tokens, h] in a new buffer of role `output_role`. Y is not read again.
  [[nodiscard]] program::BufferId forward(int layer, int microbatch, program::BufferId input,
                                          program::Role output_role);
  /// Computes dY of dZ [tokens, h] in a new buffer. dZ is not read again, weight gradients
  /// included.
  [[nodiscard]] program::BufferId backward(int layer, int microbatch, program::BufferId gradient,
                                           const Later& later);

 private:
  /// State kept from the forward to the backward pass; no_buffer if no row came.
  struct State {
    Dispatch dispatch;
    program::BufferId input = program::no_buffer;  ///< rows of the experts x h
    program::BufferId inner = program::no_buffer;  ///< rows of the experts x ffn
  };
  /// The second factor of a product, by expert: weights or their gradients, `rows` x `columns`.
  struct Weights {
    std::vector<program::Slice> of_expert;
    std::uint64_t rows = 0, columns = 0;
  };

  [[nodiscard]] program::BufferId allocate(std::uint64_t count, program::Role role, int microbatch);
  [[nodiscard]] Weights weights(int layer, Tensor tensor) const;
  [[nodiscard]] Weights gradients(int layer, Tensor tensor) const;
  [[nodiscard]] std::uint64_t up_columns() const { return g_.up_parts * g_.ffn; }

  /// Brings rows of tokens, times `scale`, into the order of this rank's experts; releases nothing.
  [[nodiscard]] program::BufferId bring(const Dispatch& way, program::BufferId tokens, double scale,
                                        program::Role role, int microbatch);
  /// Does the reverse: for each token, the sum over its experts, times `scale`; releases `rows`.
  [[nodiscard]] program::BufferId take_back(const Dispatch& way, program::BufferId rows,
                                            double scale, program::Role role, int microbatch);
  [[nodiscard]] program::BufferId moved(const std::vector<std::uint32_t>& from, std::uint32_t each,
                                        double scale, program::BufferId src, program::Role role,
                                        int microbatch);
  [[nodiscard]] program::BufferId exchanged(const std::vector<std::uint64_t>& sent,
                                            const std::vector<std::uint64_t>& received,
                                            program::BufferId src, program::Role role,
                                            int microbatch);
  [[nodiscard]] program::BufferId zeros(std::uint64_t rows, program::Role role, int microbatch);
  /// Writes dst += residual / tp, then the sum over tp.
  void add_residual(program::BufferId dst, program::BufferId residual);

  /// Writes y = alpha * x * W, or W^T, for every expert.
  void multiply(const Dispatch& way, const Weights& weights, program::Transpose transpose,
                double alpha, program::BufferId x, program::BufferId y);
  /// Writes W += alpha * x^T * dy for every expert; it assigns W if no row has come before.
  void accumulate(const Dispatch& way, int layer, Tensor tensor, int microbatch, double alpha,
                  program::BufferId x, program::BufferId dy);
  void clear(const program::Slice& gradient);
  [[nodiscard]] program::BufferId inner_forward(const Dispatch& way, program::BufferId up,
                                                int microbatch);
  [[nodiscard]] program::BufferId inner_backward(const Dispatch& way, program::BufferId d_inner);

  program::Builder& builder_;
  const Geometry& g_;
  const Types& types_;
  const Parameters& parameters_;
  GradientDone gradient_done_;
  Routing routing_;
  ExpertBatch batch_ = ExpertBatch::exact;
  std::map<std::pair<int, int>, State> kept_;  ///< by (layer, microbatch)
  std::map<std::uint64_t, bool> begun_;        ///< by offset: gradients that a row contributed to
};

}  // namespace isoscale::workloads::stack
