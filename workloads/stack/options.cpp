// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/options.hpp"

#include "base/text.hpp"
#include "workloads/stack/pipeline.hpp"

namespace isoscale::workloads::stack {

namespace {

using O = TrainingOptions;

/// Reads "equal", "proportional" or "skewed:2.5". Throws base::UsageError for any other text. A
/// skew must be between 0.01 and 100.
Partition parse_partition(std::string_view key, std::string_view text) {
  constexpr double least_skew = 0.01, most_skew = 100;
  if (text == "equal") return {};
  if (text == "proportional") return {.kind = Partition::Kind::proportional};
  constexpr std::string_view skewed = "skewed:";
  if (text.starts_with(skewed)) {
    const auto skew = base::number_in<double>(text.substr(skewed.size()));
    if (skew && *skew >= least_skew && *skew <= most_skew) {
      return {.kind = Partition::Kind::skewed, .skew = *skew};
    }
  }
  throw usage_error(
      "{}={}: use equal, proportional or skewed:X, such as skewed:2, with X from {} to {}", key,
      text, least_skew, most_skew);
}

/// Reads a rule ("equal", "nearest", "lighter-ends") or a list of layer counts ("7,8,8,7"). Throws
/// base::UsageError for any other text.
StageLayers parse_stage_layers(std::string_view key, std::string_view text) {
  constexpr std::size_t most_stages_named = 4096;
  using Kind = StageLayers::Kind;
  if (text == "equal") return {.kind = Kind::equal};
  if (text == "nearest") return {.kind = Kind::nearest};
  if (text == "lighter-ends") return {.kind = Kind::lighter_ends};
  StageLayers result{.kind = Kind::named};
  for (const std::string_view part : base::split(text, ',')) {
    const auto number = part.size() < 7 ? base::number_in<unsigned>(part) : std::nullopt;
    if (!number || result.named.size() == most_stages_named) {
      throw usage_error(
          "{}={}: equal, nearest, lighter-ends, or the layers of each stage, like 7,8,8,7", key,
          base::quoted(text));
    }
    result.named.push_back(static_cast<int>(*number));
  }
  return result;
}

/// Returns the capacity factor that a text gives: 1.25 for "1.25" or "125%", 0 for "none". Throws
/// base::UsageError for any other text.
double parse_capacity(std::string_view key, std::string_view text) {
  if (text == "none") return 0;
  const bool is_percent = text.ends_with('%');
  const double value =
      base::number_in<double>(text.substr(0, text.size() - (is_percent ? 1 : 0))).value_or(0) /
      (is_percent ? 100 : 1);
  constexpr double most = 1e6;
  if (value > 0 && value <= most) return value;
  throw usage_error(
      "{}={}: none, or how many times the even share an expert takes, like 1.25 or 125%", key,
      base::quoted(text));
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      // Options about samples, gradients of replicas, and the memory of weights, gradients and
      // optimizer states.
      option::integer<&O::batch>("batch", "", {1, 1'000'000'000},
                                 "samples per step, = dp x ep x microbatch x microbatches (weak "
                                 "scaling: of one replica); give at most two of batch, microbatch "
                                 "and microbatches (default: microbatch 4, microbatches 16)"),
      option::integer<&O::microbatch>("microbatch", "", {1, 1'000'000},
                                      "samples in one forward and backward pass"),
      option::integer<&O::microbatches>("microbatches", "", {1, 100'000},
                                        "microbatches per step and dp replica (strong scaling: at "
                                        "dp = 1), over which gradients accumulate"),
      option::choice<&O::input>("input", "resident", {"resident", "pinned", "pageable"},
                                "where the inputs lie: on the device, or in pinned or pageable "
                                "host memory, copied to the device one microbatch ahead"),
      option::choice<&O::strategy>(
          "strategy", "ddp", {"ddp", "funnel"},
          "ddp: replicas all-reduce gradients; funnel: the first replica scatters inputs, gathers "
          "outputs, reduces gradients, updates and broadcasts weights, as a single process that "
          "drives all devices does"),
      option::parsed<&O::partition, parse_partition>(
          "partition", "equal",
          "how microbatches are divided among dp replicas: equal, proportional (to each replica's "
          "speed, measured just before) or skewed:X (the first replica gets X times as many as "
          "each other one)"),
      option::toggle<&O::overlap>("overlap", "on",
                                  "all-reduce gradient buckets on their own stream during backward "
                                  "(on), or after it (off)"),
      option::bytes<&O::bucket>(
          "bucket", "25MiB", {},
          "bytes of gradients in one all-reduce, rounded up to whole tensors"),
      option::choice<&O::grad_dtype>("grad_dtype", "same", {"same", "bf16", "f16"},
                                     "type in which gradients are all-reduced between replicas: "
                                     "same as they accumulate in, or a narrow one"),
      option::choice<&O::compression>("compression", "none", {"none", "topk"},
                                      "topk: replicas exchange only the largest gradients of each "
                                      "block and keep the rest for the next step"),
      option::integer<&O::compression_ratio>("compression_ratio", "1", {1, 100},
                                             "percent of the gradients that compression=topk "
                                             "sends, rounded up to whole elements of a block"),
      option::integer<&O::compression_block>(
          "compression_block", "1024", {1, 1'048'576},
          "consecutive gradients in a block; compression=topk sends each block's largest"),
      option::choice<&O::zero>(
          "zero", "0", {"0", "1", "2", "3"},
          "ZeRO stage: shard over dp 1 the optimizer states and master weights, 2 also the "
          "gradients, 3 also the weights; no effect where dp is 1. With ep and no experts they are "
          "sharded over ep, and each of the dp groups has a copy (hybrid sharding, HSDP)"),
      option::bytes<&O::reduce_bucket>("reduce_bucket", "", {},
                                       "with zero=1|2: bytes of gradients in one reduce-scatter, "
                                       "rounded up to whole tensors (default: bucket)"),
      option::bytes<&O::gather_bucket>(
          "gather_bucket", "", {},
          "with zero=3: bytes of weights in one all-gather, rounded up to whole tensors; their "
          "gradients share one reduce-scatter (default: bucket)"),
      option::choice<&O::gather>("gather", "step_end", {"step_end", "next_step"},
                                 "with zero=1|2: gather the updated weights at the end of the "
                                 "step, or at the beginning of "
                                 "the next one, under its forward pass"),
      option::integer<&O::prefetch>("prefetch", "1", {0, 1000},
                                    "buckets (zero=3) or layers (offload=weights) of weights that "
                                    "are fetched ahead of use; each takes device memory"),
      option::integer<&O::reduces_in_flight>(
          "reduces_in_flight", "1", {0, 1000},
          "with zero=2|3: buckets of gradients that may be on their way while backward fills the "
          "next one; each takes device memory"),
      option::choice<&O::offload>(
          "offload", "none", {"none", "weights", "optimizer"},
          "keep in host memory: the weights, copied to the device layer by layer, or the "
          "optimizer's master weights and moments, copied bucket by bucket"),
      option::choice<&O::offload_memory>("offload_memory", "pinned", {"pinned", "managed"},
                                         "kind of host memory for offload: pinned, with copies, or "
                                         "CUDA managed memory, with advice and prefetches"),
      option::choice<&O::optimizer>("optimizer", "sgd", {"sgd", "adam"},
                                    "optimizer that updates the weights, bucket by bucket"),
      // Options about the split of a layer over ranks.
      option::choice<&O::tp_output>(
          "tp_output", "reduce", {"reduce", "gather"},
          "how the second GEMM of each pair is split over tp: by rows (reduce: then an all-reduce) "
          "or by columns (gather: then an all-gather)"),
      option::toggle<&O::async_reduce>(
          "async_reduce", "off",
          "sum the gradient of each pair's input over tp while the weight gradient is computed, as "
          "Megatron-LM does"),
      option::toggle<&O::sequence_parallel>(
          "sequence_parallel", "off",
          "each tp rank keeps 1/tp of the tokens between the GEMM pairs: all-gather before a pair "
          "and reduce-scatter after it instead of an all-reduce"),
      option::integer<&O::chunks>("chunks", "1", {1, 1024},
                                  "split the tp communication of each GEMM pair into this many "
                                  "chunks, so that one is sent during the GEMM of the next"),
      option::toggle<&O::ring>("ring", "off",
                               "with sequence_parallel=on: send the rows around a ring of the tp "
                               "ranks, each part during the GEMM of the part before it"),
      option::choice<&O::transport>(
          "transport", "nccl", {"nccl", "symmetric"},
          "how tp and pipeline stages communicate: nccl, or symmetric memory (NCCL's symmetric "
          "kernels, and Isoscale's own put kernel; --device cuda, NVLink)"),
      option::choice<&O::registration>(
          "registration", "none", {"none", "local"},
          "register the memory of the step with NCCL, as trainers with user buffers do: fewer "
          "copies on NVLink SHARP and the network (--device cuda)"),
      option::toggle<&O::vocabulary>(
          "vocabulary", "off",
          "include the output projection, on the last pipeline stage, which then takes longer"),
      // Options about pipeline stages.
      option::choice<&O::schedule>(
          "schedule", "1f1b", {schedule_names.begin(), schedule_names.end()},
          "pipeline schedule, the order of forward and backward passes on a stage; zb-h1 computes "
          "weight gradients later, in the bubbles"),
      option::integer<&O::v>("v", "2", {1, 1000},
                             "with schedule=interleaved: virtual stages of each rank; microbatches "
                             "must be a multiple of pp"),
      option::parsed<&O::stage_layers, parse_stage_layers>(
          "stage_layers", "equal",
          "layers of each stage: equal (pp must divide them), nearest (the first stages get one "
          "more), lighter-ends (nearest, but the input and the vocabulary count as a layer each, "
          "so that the first and the last stage get one less), or one number for each virtual "
          "stage, like 7,8,8,7; a stage may have 0"),
      option::choice<&O::handover>("handover", "whole", {"whole", "scattered"},
                                   "activations sent between stages: each tp rank sends the whole "
                                   "one, or its 1/tp, gathered over tp by the receivers"),
      // Options about the parts of a layer, and the activations that it keeps.
      option::toggle<&O::elementwise>("elementwise", "off",
                                      "norms before attention and MLP, softmax of the scores, and "
                                      "gelu or swiglu, as ops bound by memory"),
      option::choice<&O::recompute>(
          "recompute", "none", {"none", "selective", "full"},
          "activations that backward recomputes instead of keeping: none, selective (attention "
          "scores and their softmax), or full (all but a layer's input)"),
      fp8_accumulate_option<&O::fp8_accumulate>(),
      // Options about experts, which replace MLPs.
      option::integer<&O::experts>(
          "experts", "0", {0, 4096},
          "experts in each layer, each an MLP of the model's size, instead of one MLP; 0 = none; "
          "under weak scaling, experts per rank of ep"),
      option::integer<&O::topk>("topk", "2", {1, 64}, "experts to which each token is sent"),
      option::parsed<&O::capacity, parse_capacity>(
          "capacity", "none",
          "capacity factor of an expert: its tokens per sample over an even share, like 1.25 or "
          "125%; tokens beyond it are dropped; none = no limit"),
      option::integer<&O::skew>("skew", "0", {0, 1000},
                                "how uneven routing is: 0 spreads tokens evenly, else experts are "
                                "drawn by Zipf's law with this exponent in percent"),
      option::choice<&O::expert_batch>("expert_batch", "exact", {"exact", "padded"},
                                       "exact: one GEMM per expert, of its tokens; padded: one "
                                       "batched GEMM, padded to the capacity"),
      option::choice<&O::expert_placement>("expert_placement", "packed", {"packed", "spread"},
                                           "packed: ranks of an ep group lie next to each other; "
                                           "spread: as far apart as those of dp"),
  };
  return table;
}

TrainingOptions options_of(const Request& request) {
  return typed_options<TrainingOptions>(option_table(), request.options);
}

std::string text_of(const Request& request, std::string_view key) {
  return option_text(option_table(), request.options, key);
}

}  // namespace isoscale::workloads::stack
