// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "workloads/workload.hpp"

/// A transformer-shaped stack of GEMMs: what every training workload is composed from.
namespace isoscale::workloads::stack {

enum class TpOutput : std::uint8_t {
  reduce,  ///< second GEMM of a pair row-parallel, partial sums all-reduced
  gather,  ///< second GEMM column-parallel, its input and output all-gathered
};

/// The sizes of one pipeline stage on one rank. Matrices are row-major; a row is a token, and
/// tokens are ordered [sequence][sample], so that batch x heads has one stride.
struct Geometry {
  Geometry(const Request& request, int stage);

  int tp, stage, stages;
  std::uint64_t sequence;    ///< s
  std::uint64_t microbatch;  ///< b, samples
  int microbatches;          ///< m
  std::uint64_t tokens;      ///< s * b: rows of every activation
  std::uint64_t hidden;      ///< h
  std::uint64_t head_size;   ///< d
  std::uint64_t kv_heads;    ///< on this rank
  std::uint64_t grouped;     ///< query heads per key-value head
  std::uint64_t qkv;  ///< columns of QKV here: kv_heads * (grouped + 2) * d, [kv head][q..,k,v][d]
  std::uint64_t context;     ///< columns of the context here: kv_heads * grouped * d
  std::uint64_t ffn;         ///< inner width here
  std::uint64_t up_parts;    ///< 2 for a gated MLP (gate, up), else 1
  std::uint64_t vocabulary;  ///< columns of the output projection here; 0 = this stage has none
  int first_layer, layers;   ///< of this stage
  double residual_gain;      ///< g = 0.5 / layers of the model: keeps a linear stack bounded
  TpOutput tp_output;

  [[nodiscard]] bool first_stage() const { return stage == 0; }
  [[nodiscard]] bool last_stage() const { return stage == stages - 1; }
  [[nodiscard]] bool gathers() const { return tp > 1 && tp_output == TpOutput::gather; }
  [[nodiscard]] std::uint64_t activation() const { return tokens * hidden; }  ///< elements
};

/// Element types: of weights and activations; of gradients, masters and moments; of what the GEMMs
/// of the linear layers read forward, and of the gradients that they read.
struct Types {
  program::DType compute, accumulate;
  program::ComputeMode mode;
  program::DType operand, gradient_operand;
  [[nodiscard]] bool has_master() const { return compute != accumulate; }
  [[nodiscard]] bool casts_operands() const { return operand != compute; }
};
[[nodiscard]] Types types_of(Precision precision);

}  // namespace isoscale::workloads::stack
