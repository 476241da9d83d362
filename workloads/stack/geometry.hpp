// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/api/workload.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::workloads::stack {

// Every training workload is composed from a transformer-shaped stack of GEMMs.

struct Deal;

enum class TpOutput : std::uint8_t {
  reduce,  ///< second GEMM of a pair row-parallel, partial sums all-reduced
  gather,  ///< second GEMM column-parallel, its input and output all-gathered
};

/// The activations of a forward pass that backward computes once more (Korthikanti et al.,
/// arXiv 2205.05198).
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< what is large and costs little: scores, softmax, the result of the activation
  full,       ///< all but the input of each layer
};

/// Consecutive layers.
struct LayerRange {
  int first = 0, count = 0;
  [[nodiscard]] int end() const { return first + count; }
};

/// The sizes of what one rank holds: its pipeline stage, its shard of it. Matrices are row-major; a
/// row is a token, and tokens are ordered [sequence][sample], so that batch x heads has one stride.
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
  /// Microbatches before a replica's first, in the batch: base + coordinate along dp x step.
  int microbatch_base, microbatch_step;
  std::uint64_t tokens;        ///< s * b: rows of what a layer's GEMMs read and write
  bool sequence_parallel;      ///< between the pairs of GEMMs a rank has 1/tp of the rows
  bool ring;                   ///< rows go round the tp group one rank's part at a time
  std::uint64_t chunks;        ///< in how many parts a pair's rows travel over tp
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
  bool hand_over_scattered;  ///< each rank of tp hands over its rows only

  /// The layers of a chunk, numbered within the stage.
  [[nodiscard]] LayerRange layers_of(int chunk) const;
  /// The number in the model of a layer of this stage.
  [[nodiscard]] int global_layer(int layer) const;
  [[nodiscard]] bool first_stage() const { return stage == 0; }
  [[nodiscard]] bool last_stage() const { return stage == stages - 1; }
  [[nodiscard]] bool gathers() const { return tp > 1 && tp_output == TpOutput::gather; }
  /// A rank hands over its rows anyhow under sequence_parallel.
  [[nodiscard]] bool scatters_hand_over() const {
    return tp > 1 && hand_over_scattered && !sequence_parallel;
  }
  /// Elements of an activation between the pairs: what stages hand on and layers keep.
  [[nodiscard]] std::uint64_t activation() const { return shard_tokens * hidden; }
  /// True if tp communication has a stream of its own, under GEMMs.
  [[nodiscard]] bool streams_tp() const { return sequence_parallel || chunks > 1; }

 private:
  void set_microbatches(const Deal& deal);
};

/// Element types: of weights and activations; of gradients, masters and moments; of what the GEMMs
/// of the linear layers read forward, and of the gradients that they read; how their products are
/// added forward and in gradients.
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
/// The same, and products of fp8 accumulate as the option fp8_accumulate says.
[[nodiscard]] Types types_of(Precision precision, const OptionReader& options);
/// The option for a table.
[[nodiscard]] OptionSpec fp8_accumulate_option();

// The microbatches of a step are dealt to the replicas along dp.

/// Microbatches by replica.
struct Deal {
  std::vector<int> microbatches;
  [[nodiscard]] int total() const;
  /// Microbatches of the replicas before this one: samples are numbered replica by replica.
  [[nodiscard]] int first(int replica) const;
  /// The first of the replicas that play the same program as this one: consecutive ones that get
  /// as many microbatches, unless their samples cannot be numbered from 0 on in equal steps.
  [[nodiscard]] int alike(int replica) const;
};

/// `total` units dealt by weight: the whole parts of the exact shares, then one each to the largest
/// remainders (of equal ones the first), then from the largest shares to those below `least`.
/// `total` is at least `least` x replicas.
[[nodiscard]] std::vector<int> deal_by_weight(int total, const std::vector<double>& weights,
                                              int least);

/// The division of microbatches x dp that `partition` asks for, in turns of pp where the schedule
/// takes them so. proportional without measured speeds is equal.
[[nodiscard]] Deal deal_of(const Request& request);
/// By dp coordinate, Deal::alike.
[[nodiscard]] std::vector<int> alike_replicas(const Request& request);

/// Throws base::UsageError, with the numbers and the nearest that works, when `partition` has no
/// meaning or nothing to deal.
void require_partition(const Request& scaled);

}  // namespace isoscale::workloads::stack
