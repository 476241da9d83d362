// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/api/workload.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::workloads::stack {

// Sizes for training workloads, each of which is composed from a transformer-shaped stack of GEMMs.

struct Deal;

enum class TpOutput : std::uint8_t {
  reduce,  ///< second GEMM of a pair row-parallel, partial sums all-reduced
  gather,  ///< second GEMM column-parallel, its input and output all-gathered
};

/// Says which activations of a forward pass backward computes again (Korthikanti et al., arXiv
/// 2205.05198).
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< the large and cheap ones: scores, softmax, the result of the activation
  full,       ///< all but the input of each layer
};

/// Consecutive layers.
struct LayerRange {
  int first = 0, count = 0;
  [[nodiscard]] int end() const { return first + count; }
};

/// The sizes of one rank's part: its pipeline stage, and its shard of that. Matrices are row-major;
/// a row is a token, and tokens are ordered [sequence][sample], so that batch x heads has one
/// stride.
struct Geometry {
  Geometry(const Request& request, const mesh::Coordinates& at);

  mesh::Coordinates at;  ///< only along axes in which programs differ; else 0 (program_axes)
  int tp, cp, ep, stage, stages;
  int replicas;  ///< ranks with the same parameters and other samples, or other parts of them
  std::uint64_t whole_sequence;  ///< of the model
  std::uint64_t sequence;        ///< s: positions on this rank and its tp group, 1/cp of the whole
  std::uint64_t microbatch;      ///< b, samples
  int microbatches;              ///< m, of this replica
  int all_microbatches;          ///< of all replicas along dp together
  /// The number of microbatches before a replica's first in the batch: base + coordinate along dp x
  /// step.
  int microbatch_base, microbatch_step;
  std::uint64_t tokens;        ///< s * b: rows of what a layer's GEMMs read and write
  bool sequence_parallel;      ///< between the pairs of GEMMs a rank has 1/tp of the rows
  bool ring;                   ///< rows go around the tp group, one rank's part at a time
  std::uint64_t chunks;        ///< the parts in which a pair's rows are sent over tp
  std::uint64_t shard_tokens;  ///< rows of activations between the pairs: tokens, or 1/tp of them
  std::uint64_t hidden;        ///< h
  std::uint64_t head_size;     ///< d
  std::uint64_t kv_heads;      ///< on this rank
  std::uint64_t grouped;       ///< query heads per key-value head
  std::uint64_t qkv;  ///< columns of QKV here: kv_heads * (grouped + 2) * d, [kv head][q..,k,v][d]
  std::uint64_t context;     ///< columns of the context here: kv_heads * grouped * d
  std::uint64_t ffn;         ///< inner width here
  std::uint64_t up_parts;    ///< 2 for a gated MLP (gate, up), else 1
  std::uint64_t vocabulary;  ///< columns of the output projection here; 0 = this stage has none
  Pipeline pipeline;         ///< the stages, their layers and their schedule
  int layers;                ///< of this stage, all its chunks
  int local_experts;         ///< of a layer, on this rank; 0 = a dense MLP
  double residual_gain;      ///< g = 0.5 / layers of the model: keeps a linear stack bounded
  TpOutput tp_output;
  bool elementwise;  ///< norms, softmax and activations are written
  Recompute recompute;
  bool hand_over_scattered;  ///< each rank of tp hands over only its rows

  /// Returns the layers of a chunk, numbered within the stage.
  [[nodiscard]] LayerRange layers_of(int chunk) const;
  /// Returns the number in the model of a layer of this stage.
  [[nodiscard]] int global_layer(int layer) const;
  [[nodiscard]] bool first_stage() const { return stage == 0; }
  [[nodiscard]] bool last_stage() const { return stage == stages - 1; }
  [[nodiscard]] bool gathers() const { return tp > 1 && tp_output == TpOutput::gather; }
  /// True if each rank of tp hands over only its rows; under sequence_parallel it does anyway.
  [[nodiscard]] bool scatters_hand_over() const {
    return tp > 1 && hand_over_scattered && !sequence_parallel;
  }
  /// Returns the elements of an activation between the pairs, which stages hand over and layers
  /// keep.
  [[nodiscard]] std::uint64_t activation() const { return shard_tokens * hidden; }
  /// True if tp communication has a stream of its own, under GEMMs.
  [[nodiscard]] bool streams_tp() const { return sequence_parallel || chunks > 1; }

 private:
  void set_microbatches(const Deal& deal);
};

/// Element types: those of weights and activations; of gradients, masters and moments; of what the
/// GEMMs of linear layers read in forward, and of the gradients that they read. Also how products
/// are added in forward and in gradients.
struct Types {
  program::DType compute, accumulate;
  program::ComputeMode mode;
  program::DType operand, gradient_operand;
  program::Accumulation forward = program::Accumulation::split;
  program::Accumulation backward = program::Accumulation::split;
  [[nodiscard]] bool has_master() const { return compute != accumulate; }
  [[nodiscard]] bool casts_operands() const { return operand != compute; }
};
[[nodiscard]] Types types_of(Precision precision);
/// Returns the types; fp8 products accumulate as the option fp8_accumulate says.
[[nodiscard]] Types types_of(Precision precision, const OptionReader& options);
/// Returns the option fp8_accumulate for a table.
[[nodiscard]] OptionSpec fp8_accumulate_option();

// The microbatches of a step are distributed over the replicas along dp.

/// The number of microbatches of each replica.
struct Deal {
  std::vector<int> microbatches;
  [[nodiscard]] int total() const;
  /// Returns the microbatches of the replicas before this one: samples are numbered replica by
  /// replica.
  [[nodiscard]] int first(int replica) const;
  /// Returns the first of the replicas that play the same program as this one. These are
  /// consecutive and have equally many microbatches; they do not share a program if their samples
  /// cannot be numbered from 0 on in equal steps.
  [[nodiscard]] int alike(int replica) const;
};

/// Distributes `total` units by weight. Each gets the whole part of its exact share; the largest
/// remainders (the first of equal ones) get one more each; then units move from the largest shares
/// to those below `least`. `total` must be at least `least` x replicas.
[[nodiscard]] std::vector<int> deal_by_weight(int total, const std::vector<double>& weights,
                                              int least);

/// Returns the distribution of microbatches x dp that `partition` asks for, in turns of pp if the
/// schedule needs them. Without measured speeds, proportional is equal.
[[nodiscard]] Deal deal_of(const Request& request);
/// Returns Deal::alike by dp coordinate.
[[nodiscard]] std::vector<int> alike_replicas(const Request& request);

/// Throws base::UsageError, with the numbers and the nearest that works, if `partition` is invalid
/// or has too few microbatches to distribute.
void require_partition(const Request& scaled);

}  // namespace isoscale::workloads::stack
