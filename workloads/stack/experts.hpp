// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/dispatch.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::stack {

/// Writes what stands in the place of a layer's MLP where the model has experts (Shazeer et al.,
/// arXiv 1701.06538; Lepikhin et al., arXiv 2006.16668), on the compute stream:
///   Z = g / topk * sum over the experts e of a token (inner(Y * Wup_e) * Wdown_e) + Y.
/// Rows go to the ranks of their experts along ep and come back. Each expert's width is split over
/// tp as the MLP's is: the sums over tp are those of whole activations, after rows have come back.
class ExpertWriter {
 public:
  using GradientDone = std::function<void(const program::Slice&)>;
  /// Takes what may be written after the layer's input gradients (LayerWriter).
  using Later = std::function<void(std::function<void()>)>;

  ExpertWriter(program::Builder& builder, const Geometry& geometry, const Types& types,
               const Parameters& parameters, const Request& request, GradientDone gradient_done);

  [[nodiscard]] bool has_experts() const { return routing_.has_experts(); }
  /// Y [tokens, h] -> Z, a new buffer of role `output_role`. Y is not read again.
  [[nodiscard]] program::BufferId forward(int layer, int microbatch, program::BufferId input,
                                          program::Role output_role);
  /// dZ [tokens, h] -> dY, a new buffer. dZ is not read again, weight gradients included.
  [[nodiscard]] program::BufferId backward(int layer, int microbatch, program::BufferId gradient,
                                           const Later& later);

 private:
  /// What is kept from the forward to the backward pass; no buffer where no row came.
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

  /// Rows of tokens, `scale` times, in the order of this rank's experts; releases nothing.
  [[nodiscard]] program::BufferId bring(const Dispatch& way, program::BufferId tokens, double scale,
                                        program::Role role, int microbatch);
  /// The reverse: for each token the sum over its experts, `scale` times; releases `rows`.
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
  /// dst += residual / tp, then the sum over tp.
  void add_residual(program::BufferId dst, program::BufferId residual);

  /// y = alpha * x * W, or W^T, of every expert.
  void multiply(const Dispatch& way, const Weights& weights, program::Transpose transpose,
                double alpha, program::BufferId x, program::BufferId y);
  /// W += alpha * x^T * dy of every expert; W = when no row has come before.
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
  std::map<std::uint64_t, bool> begun_;        ///< by offset: gradients that some row has gone into
};

}  // namespace isoscale::workloads::stack
