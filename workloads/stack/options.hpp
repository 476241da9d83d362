// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.hpp"
#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::stack {

/// ddp: replicas all-reduce gradients. funnel: all data goes through the first replica.
enum class Strategy : std::uint8_t { ddp, funnel };

enum class GradientType : std::uint8_t { same, bf16, f16 };
enum class Compression : std::uint8_t { none, topk };

/// Offload names the data that is kept in host memory until it is needed, and OffloadMemory the
/// kind of that memory.
enum class Offload : std::uint8_t { none, weights, optimizer };
enum class OffloadMemory : std::uint8_t { pinned, managed };

enum class TpOutput : std::uint8_t {
  reduce,  ///< the second GEMM of a pair is row-parallel; its partial sums are summed over tp
  gather,  ///< the second GEMM is column-parallel; its input and output are all-gathered
};

/// The time at which replicas gather the updated weights if each has updated only a part of them
/// (zero=1|2): at the end of the step, or at the beginning of the next one.
enum class Gather : std::uint8_t { step_end, next_step };

enum class Schedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zb_h1 };

/// Says how an activation is sent between stages: each rank of tp sends the whole activation, or
/// only its own rows.
enum class HandOverForm : std::uint8_t { whole, scattered };

/// The activations that backward computes again instead of keeping them (Korthikanti et al., arXiv
/// 2205.05198).
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< large, cheap to recompute: scores, softmax, activation function's output
  full,       ///< all but the inputs of layers
};

/// Says how GPUs add up the products in an fp8 GEMM. fast: within tensor cores, which keep about 14
/// bits. split: with partial sums in f32. by_pass: fast in forward, split in gradients.
enum class Fp8Accumulate : std::uint8_t { by_pass, fast, split };

/// Says how the experts of a rank multiply. exact: one GEMM for each expert, with its own rows.
/// padded: one batched GEMM, with as many rows for each expert as the capacity allows.
enum class ExpertBatch : std::uint8_t { exact, padded };

enum class ExpertPlacement : std::uint8_t { packed, spread };

/// Says how microbatches are divided among replicas: in equal parts, in proportion to the measured
/// speeds of replicas, or with another share for the first replica.
struct Partition {
  enum class Kind : std::uint8_t { equal, proportional, skewed } kind = Kind::equal;
  double skew = 1;  ///< skewed: share of the first replica, divided by the share of any other
};

/// Says how many layers each virtual stage has. equal: all have the same number. nearest: as equal
/// as possible; the first ones may have one more. lighter_ends: as `nearest`, but the input counts
/// as a layer of the first stage, and the vocabulary as a layer of the last one. named: the numbers
/// in `named`.
struct StageLayers {
  enum class Kind : std::uint8_t { equal, nearest, lighter_ends, named } kind = Kind::equal;
  std::vector<int> named{};  ///< named: the layers of each virtual stage; a stage may have none
};

/// Holds the parsed options of training workloads, which option_table() describes.
struct TrainingOptions {
  long long batch = 0, microbatch = 0, microbatches = 0;  ///< 0 = not given
  program::Space input{};
  Strategy strategy{};
  bool overlap = true;
  GradientType grad_dtype{};
  Compression compression{};
  long long compression_ratio = 0, compression_block = 0;
  Partition partition{};
  std::uint64_t bucket = 0;
  int zero = 0;
  Gather gather{};
  std::optional<std::uint64_t> reduce_bucket{}, gather_bucket{};
  std::size_t prefetch = 0, reduces_in_flight = 0;
  Offload offload{};
  OffloadMemory offload_memory{};
  program::Optimizer optimizer{};
  TpOutput tp_output{};
  bool async_reduce = false;
  bool sequence_parallel = false;
  long long chunks = 1;
  bool ring = false;
  program::Transport transport{};
  program::Registration registration{};
  bool vocabulary = false;
  Schedule schedule{};
  int v = 1;
  StageLayers stage_layers{};
  HandOverForm handover{};
  bool elementwise = false;  ///< layers have norms, softmax and activations
  Recompute recompute{};
  Fp8Accumulate fp8_accumulate{};
  long long experts = 0;
  std::uint32_t topk = 1;
  ExpertBatch expert_batch{};
  ExpertPlacement expert_placement{};
  double capacity = 0;  ///< limit on an expert's tokens, in multiples of an even share; 0 = none
  double skew = 0;
};

/// Returns the options of the training workloads (dp, tp, pp, cp, ep, hybrid), which all have the
/// same options, except that ep has another default for `experts`.
[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] TrainingOptions options_of(const Request& request);
/// Returns one option of a request, which may be for any workload.
template <class Value>
[[nodiscard]] Value option_of(const Request& request, std::string_view key,
                              Value TrainingOptions::*member) {
  const std::span<const OptionSpec> row{&find_option(option_table(), key), 1};
  return typed_options<TrainingOptions>(row, request.options).*member;
}
/// Returns an option as text, for messages.
[[nodiscard]] std::string text_of(const Request& request, std::string_view key);

/// The values of the option fp8_accumulate, in the order of Fp8Accumulate.
inline constexpr std::array<std::string_view, 3> fp8_accumulate_names{"by-pass", "fast", "split"};

/// Returns the option fp8_accumulate, for an option table.
template <auto member>
[[nodiscard]] OptionSpec fp8_accumulate_option() {
  return option::choice<member>(
      "fp8_accumulate", "by-pass", {fp8_accumulate_names.begin(), fp8_accumulate_names.end()},
      "how GPUs add fp8 products: split, with partial sums in f32; fast, within tensor cores; "
      "by-pass, fast forward and split in gradients, as Transformer Engine does");
}

// The functions below check combinations of options. They throw base::UsageError, which says what
// to use instead.

/// Refuses options about replicas that exclude each other or an axis of the mesh, and a partition
/// with too few microbatches.
void require_data(const Request& scaled);
/// Refuses options about tensor parallelism that exclude each other, a cp that does not divide the
/// sequence, a tp or chunks that do not divide the rows of a rank, and a softmax with more rows
/// than an op can count.
void require_tensor(const Request& scaled);
/// Refuses options about where weights, gradients and optimizer states are kept that exclude each
/// other or another option, and offload=optimizer if there is neither a moment nor a master weight.
void require_states(const Request& scaled);
/// Refuses options about experts that do not fit ep or another option, an ep above 1 with neither
/// experts nor zero, and experts whose programs would be too large.
void require_experts(const Request& scaled);
struct Geometry;  // workloads/stack/partitioning.hpp
/// Refuses extents of the linear layers that fp8 GEMMs cannot have.
void require_fp8_extents(const Geometry& geometry);

/// Returns the options that were given, differ from their default, and have no effect in any of
/// these requests (whose workloads have the options of option_table()), because they need another
/// option: the key, and a sentence such as "v=3 has no effect without schedule=interleaved".
[[nodiscard]] std::map<std::string, std::string> idle_options(
    const std::vector<const Request*>& requests);

/// Builds the setup and the step of the ranks that have the coordinates `at` along program_axes().
[[nodiscard]] program::RankProgram build_stage(const Request& request, const mesh::Coordinates& at);

}  // namespace isoscale::workloads::stack
