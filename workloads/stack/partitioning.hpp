// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "program/builder.hpp"
#include "workloads/api/workload.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::workloads::stack {

// Most files of workloads/stack use these names of namespace program.
using program::Add;
using program::Advice;
using program::Advise;
using program::BufferId;
using program::Builder;
using program::Collective;
using program::CollectiveKind;
using program::Copy;
using program::DType;
using program::Exchange;
using program::Fill;
using program::Gemm;
using program::Matrix;
using program::no_buffer;
using program::Phase;
using program::Place;
using program::Role;
using program::Shard;
using program::Slice;
using program::Space;
using program::StreamId;
using program::Transpose;
using program::Update;

// The declarations below describe the part of a transformer that one rank has, and its sizes. The
// layers of a transformer follow one another. Each consists of GEMMs and, with the option
// `elementwise`, of norms, softmax and activation functions.

/// A range of consecutive layers.
struct LayerRange {
  int first = 0, count = 0;
  [[nodiscard]] int end() const { return first + count; }
};

/// The sizes of one rank's part of the model: its pipeline stage, and its shard of that stage.
/// Matrices are row-major. A row is a token, and tokens are ordered [sequence][sample], so that one
/// stride is enough to step through samples and heads.
struct Geometry {
  Geometry(const Request& request, const mesh::Coordinates& coordinates);

  TrainingOptions options;
  mesh::Coordinates at;  ///< 0 along axes in which programs do not differ (program_axes)
  int tp, cp, ep, stage, stages;
  int replicas;                  ///< cp x ep x dp: ranks over which non-expert gradients are summed
  std::uint64_t whole_sequence;  ///< positions of a sample
  std::uint64_t sequence;        ///< s: positions on this rank and its tp group, 1/cp of the whole
  std::uint64_t microbatch;      ///< b, samples of a microbatch
  int microbatches;              ///< m, microbatches of this replica
  int all_microbatches;          ///< microbatches of all replicas along dp
  /// The index of a replica's first microbatch in the batch is base + step x coordinate along dp.
  int microbatch_base, microbatch_step;
  std::uint64_t tokens;        ///< s * b: rows that a layer's GEMMs read and write
  bool sequence_parallel;      ///< between the pairs of GEMMs, a rank has 1/tp of the rows
  bool async_reduce;           ///< GEMMs of weight gradients hide sums of input gradients over tp
  bool ring;                   ///< rows go around the ring of tp ranks, one rank's rows at a time
  std::uint64_t chunks;        ///< parts in which the rows of a pair of GEMMs are sent over tp
  std::uint64_t shard_tokens;  ///< rows between the pairs of GEMMs: tokens, or 1/tp of them
  std::uint64_t hidden;        ///< h in formulas
  std::uint64_t head_size;     ///< d in formulas
  std::uint64_t kv_heads;      ///< key-value heads on this rank
  std::uint64_t grouped;       ///< query heads per key-value head
  std::uint64_t qkv;  ///< columns of QKV here: kv_heads * (grouped + 2) * d, [kv head][q..,k,v][d]
  std::uint64_t context;     ///< columns of the context here: kv_heads * grouped * d
  std::uint64_t ffn;         ///< inner width of the MLP on this rank
  std::uint64_t up_parts;    ///< 2 for a gated MLP (gate, up), else 1
  std::uint64_t vocabulary;  ///< columns of the output projection here; 0 = this stage has none
  Pipeline pipeline;         ///< the stages, their layers and their schedule
  int layers;                ///< layers of this stage, in all its chunks
  int local_experts;         ///< experts of a layer on this rank; 0 = a dense MLP
  Trainer trainer;           ///< training software whose memory is predicted, if any
  /// Elements of the embedding on this rank, which only real training software has. The number is
  /// 0 for programs that are run, without the option `vocabulary`, and on all stages but the first.
  /// It is also 0 on a single stage whose output projection shares the embedding's weights.
  std::uint64_t embedding;
  double residual_gain;  ///< g = 0.5 / layers of the model: keeps activations bounded

  /// Returns the layers of a chunk, as numbered within the stage.
  [[nodiscard]] LayerRange layers_of(int chunk) const;
  /// Converts the index of a layer within this stage to its index in the whole model.
  [[nodiscard]] int global_layer(int layer) const;
  /// Returns the number of tokens in the batch of all replicas; ranks along cp and ep have
  /// different tokens.
  [[nodiscard]] double batch_tokens() const {
    return static_cast<double>(tokens) * all_microbatches * (cp * ep);
  }
  /// True if the software whose memory is predicted computes attention in one kernel, which stores
  /// no scores.
  [[nodiscard]] bool fuses_attention() const {
    return trainer == Trainer::fused_attention && options.elementwise;
  }
  [[nodiscard]] bool first_stage() const { return stage == 0; }
  [[nodiscard]] bool last_stage() const { return stage == stages - 1; }
  [[nodiscard]] bool gathers() const { return tp > 1 && options.tp_output == TpOutput::gather; }
  /// True if each rank of tp sends only its rows to the next stage, which must then gather them.
  /// Under sequence_parallel nothing is gathered, since each rank needs only its own rows.
  [[nodiscard]] bool scatters_hand_over() const {
    return tp > 1 && options.handover == HandOverForm::scattered && !sequence_parallel;
  }
  /// Returns the number of elements of an activation between the pairs of GEMMs. Such activations
  /// are sent between stages and kept by layers.
  [[nodiscard]] std::uint64_t activation() const { return shard_tokens * hidden; }
};

/// The element types of a program. `compute` is the type of weights and activations, `accumulate`
/// is the type of gradients, master weights and moments. The GEMMs of linear layers read weights
/// and activations as `operand`, and gradients as `gradient_operand`. `forward` and `backward` say
/// how these GEMMs add up products.
struct Types {
  DType compute, accumulate;
  program::ComputeMode mode;
  DType operand, gradient_operand;
  program::Accumulation forward = program::Accumulation::split;
  program::Accumulation backward = program::Accumulation::split;
  [[nodiscard]] bool has_master() const { return compute != accumulate; }
  [[nodiscard]] bool casts_operands() const { return operand != compute; }
};
[[nodiscard]] Types types_of(Precision precision);
/// Returns types_of(precision), but with the accumulation of fp8 products that the option
/// fp8_accumulate selects.
[[nodiscard]] Types types_of(Precision precision, Fp8Accumulate accumulate);

/// Rows, columns and row strides of fp8 operands must be multiples of this number (cuBLASLt).
inline constexpr int fp8_multiple = 16;

// The declarations below are about the replicas along dp and the microbatches that each one gets.

/// The number of microbatches of each replica.
struct Distribution {
  std::vector<int> microbatches;
  [[nodiscard]] int total() const { return first(static_cast<int>(microbatches.size())); }
  /// Returns the number of microbatches of all replicas before this one, which is the index of its
  /// first microbatch in the batch.
  [[nodiscard]] int first(int replica) const {
    return std::accumulate(microbatches.begin(), microbatches.begin() + replica, 0);
  }
  /// Returns the first of the replicas that share a program with this one. These replicas are
  /// consecutive and have the same number of microbatches. A shared program computes the index of a
  /// replica's first microbatch as base + step * (coordinate along dp), and `base` must not be
  /// negative. If it would be, the replica has a program of its own, and the result is `replica`.
  [[nodiscard]] int alike(int replica) const;
};

/// True if all data goes through the first replica: strategy=funnel with several replicas.
[[nodiscard]] inline bool funnels(const Geometry& geometry) {
  return geometry.replicas > 1 && geometry.options.strategy == Strategy::funnel;
}
/// True if this replica receives its weights from the first replica and does not update them.
[[nodiscard]] inline bool follows(const Geometry& geometry) {
  return geometry.at.dp != 0 && funnels(geometry);
}

/// Distributes `total` units over replicas in proportion to `weights`. Each replica first gets its
/// exact share, rounded down. The units that are left go, one each, to the replicas that lost most
/// by rounding; if two lost the same, the earlier one comes first. Then units are moved from the
/// largest shares to those below `least`. `total` must be at least `least` times the number of
/// replicas.
[[nodiscard]] std::vector<int> distribute_by_weight(int total, const std::vector<double>& weights,
                                                    int least);

/// Returns how the option `partition` distributes the step's microbatches, `microbatches` times dp
/// in all, over the replicas. With schedule=interleaved on several stages, each replica gets a
/// multiple of pp. Without measured speeds, "proportional" gives equal parts. If the schedule
/// cannot use `microbatches`, each replica gets just this number; require_pipeline() refuses it.
[[nodiscard]] Distribution distribution_of(const Request& request);

/// Throws base::UsageError, with the numbers and the nearest valid ones, if there are too few
/// microbatches for the option `partition` to distribute.
void require_partition(const Request& scaled);

/// Returns the axes along which ranks run different programs. Ranks that differ only along other
/// axes share a program.
[[nodiscard]] mesh::AxisSet program_axes(const Request& request);
/// Returns, for each coordinate along dp, the first replica with the same program. Replicas may
/// share a program even if program_axes() contains dp.
[[nodiscard]] std::vector<int> replica_programs(const Request& request);

}  // namespace isoscale::workloads::stack
