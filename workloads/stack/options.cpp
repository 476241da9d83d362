// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/stack/options.hpp"

#include <vector>

#include "workloads/api/options.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads::stack {

namespace {

/// Returns the options about samples, and about gradients of replicas.
std::vector<OptionSpec> data_options() {
  return {
      OptionSpec{.key = "batch",
                 .type = OptionType::integer,
                 .minimum = 1,
                 .maximum = 1'000'000'000,
                 .help = "samples per step, = dp x ep x microbatch x microbatches (weak scaling: "
                         "of one replica); give at most two of batch, microbatch and microbatches "
                         "(default: microbatch 4, microbatches 16)"},
      OptionSpec{.key = "microbatch",
                 .type = OptionType::integer,
                 .minimum = 1,
                 .maximum = 1'000'000,
                 .help = "samples in one forward and backward pass"},
      OptionSpec{.key = "microbatches",
                 .type = OptionType::integer,
                 .minimum = 1,
                 .maximum = 100'000,
                 .help = "microbatches per step and dp replica (strong scaling: at dp = 1), over "
                         "which gradients accumulate"},
      OptionSpec{.key = "input",
                 .default_value = "resident",
                 .choices = {"resident", "pinned", "pageable"},
                 .help =
                     "where the inputs lie: on the device, or in pinned or pageable host memory, "
                     "copied to the device one microbatch ahead"},
      OptionSpec{.key = "strategy",
                 .default_value = "ddp",
                 .choices = {"ddp", "funnel"},
                 .help = "ddp: replicas all-reduce gradients; funnel: the first replica scatters "
                         "inputs, gathers outputs, reduces gradients, updates and broadcasts "
                         "weights, as a single process that drives all devices does"},
      OptionSpec{.key = "partition",
                 .type = OptionType::text,
                 .default_value = "equal",
                 .help = "how microbatches are divided among dp replicas: equal, proportional (to "
                         "each replica's speed, measured just before) or skewed:X (the first "
                         "replica gets X times as many as each other one)"},
      OptionSpec{.key = "overlap",
                 .default_value = "on",
                 .choices = {"on", "off"},
                 .help = "all-reduce gradient buckets on their own stream during backward (on), or "
                         "after it (off)"},
      OptionSpec{.key = "bucket",
                 .type = OptionType::bytes,
                 .default_value = "25MiB",
                 .help = "bytes of gradients in one all-reduce, rounded up to whole tensors"},
      OptionSpec{.key = "grad_dtype",
                 .default_value = "same",
                 .choices = {"same", "bf16", "f16"},
                 .help = "type in which gradients are all-reduced between replicas: same as they "
                         "accumulate in, or a narrow one"},
      OptionSpec{.key = "compression",
                 .default_value = "none",
                 .choices = {"none", "topk"},
                 .help = "topk: replicas exchange only the largest gradients of each block and "
                         "keep the rest for the next step"},
      OptionSpec{.key = "compression_ratio",
                 .type = OptionType::integer,
                 .default_value = "1",
                 .minimum = 1,
                 .maximum = 100,
                 .help =
                     "percent of the gradients that compression=topk sends, rounded up to whole "
                     "elements of a block"},
      OptionSpec{.key = "compression_block",
                 .type = OptionType::integer,
                 .default_value = "1024",
                 .minimum = 1,
                 .maximum = 1'048'576,
                 .help = "consecutive gradients in a block; compression=topk sends each block's "
                         "largest"},
      OptionSpec{.key = "zero",
                 .default_value = "0",
                 .choices = {"0", "1", "2", "3"},
                 .help =
                     "ZeRO stage: shard over dp 1 the optimizer states and master weights, 2 also "
                     "the gradients, 3 also the weights; no effect where dp is 1"},
      OptionSpec{.key = "reduce_bucket",
                 .type = OptionType::bytes,
                 .help = "with zero=1|2: bytes of gradients in one reduce-scatter, rounded up to "
                         "whole tensors (default: bucket)"},
      OptionSpec{.key = "gather_bucket",
                 .type = OptionType::bytes,
                 .help = "with zero=3: bytes of weights in one all-gather, rounded up to whole "
                         "tensors; their gradients share one reduce-scatter (default: bucket)"},
      OptionSpec{.key = "prefetch",
                 .type = OptionType::integer,
                 .default_value = "1",
                 .minimum = 0,
                 .maximum = 1000,
                 .help = "buckets (zero=3) or layers (offload=weights) of weights that are fetched "
                         "ahead of use; each takes device memory"},
      OptionSpec{.key = "offload",
                 .default_value = "none",
                 .choices = {"none", "weights", "optimizer"},
                 .help = "keep in host memory: the weights, copied to the device layer by layer, "
                         "or the optimizer's master weights and moments, copied bucket by bucket"},
      OptionSpec{.key = "offload_memory",
                 .default_value = "pinned",
                 .choices = {"pinned", "managed"},
                 .help = "kind of host memory for offload: pinned, with copies, or CUDA managed "
                         "memory, with advice and prefetches"},
      OptionSpec{.key = "optimizer",
                 .default_value = "sgd",
                 .choices = {"sgd", "adam"},
                 .help = "optimizer that updates the weights, bucket by bucket"},
  };
}

/// Returns the options about how a layer is split over ranks.
std::vector<OptionSpec> tensor_options() {
  return {
      OptionSpec{.key = "tp_output",
                 .default_value = "reduce",
                 .choices = {"reduce", "gather"},
                 .help =
                     "how the second GEMM of each pair is split over tp: by rows (reduce: then an "
                     "all-reduce) or by columns (gather: then an all-gather)"},
      OptionSpec{.key = "sequence_parallel",
                 .default_value = "off",
                 .choices = {"on", "off"},
                 .help = "each tp rank keeps 1/tp of the tokens between the GEMM pairs: all-gather "
                         "before a pair and reduce-scatter after it instead of an all-reduce"},
      OptionSpec{.key = "chunks",
                 .type = OptionType::integer,
                 .default_value = "1",
                 .minimum = 1,
                 .maximum = 1024,
                 .help = "split the tp communication of each GEMM pair into this many chunks, so "
                         "that one is sent during the GEMM of the next"},
      OptionSpec{.key = "ring",
                 .default_value = "off",
                 .choices = {"on", "off"},
                 .help = "with sequence_parallel=on: send the rows around a ring of the tp ranks, "
                         "each part during the GEMM of the part before it"},
      OptionSpec{.key = "transport",
                 .default_value = "nccl",
                 .choices = {"nccl", "symmetric"},
                 .help = "how tp and pipeline stages communicate: nccl, or symmetric memory "
                         "(NCCL's symmetric kernels, and Isoscale's own put kernel; --device cuda, "
                         "NVLink)"},
      OptionSpec{.key = "registration",
                 .default_value = "none",
                 .choices = {"none", "local"},
                 .help = "register the memory of the step with NCCL, as trainers with user buffers "
                         "do: fewer copies on NVLink SHARP and the network (--device cuda)"},
      OptionSpec{.key = "vocabulary",
                 .default_value = "off",
                 .choices = {"on", "off"},
                 .help = "include the output projection, on the last pipeline stage, which then "
                         "takes longer"},
  };
}

/// Returns the options about pipeline stages.
std::vector<OptionSpec> pipeline_options() {
  return {
      OptionSpec{.key = "schedule",
                 .default_value = "1f1b",
                 .choices = {"gpipe", "1f1b", "interleaved", "zb-h1"},
                 .help = "pipeline schedule, the order of forward and backward passes on a stage; "
                         "zb-h1 computes weight gradients later, in the bubbles"},
      OptionSpec{.key = "v",
                 .type = OptionType::integer,
                 .default_value = "2",
                 .minimum = 1,
                 .maximum = 1000,
                 .help = "with schedule=interleaved: virtual stages of each rank; microbatches "
                         "must be a multiple of pp"},
      OptionSpec{.key = "stage_layers",
                 .type = OptionType::text,
                 .default_value = "equal",
                 .help = "layers of each stage: equal (pp must divide them), nearest (the first "
                         "stages get one more), or one number for each virtual stage, like "
                         "7,8,8,7"},
      OptionSpec{.key = "handover",
                 .default_value = "whole",
                 .choices = {"whole", "scattered"},
                 .help = "activations sent between stages: each tp rank sends the whole one, or "
                         "its 1/tp, gathered over tp by the receivers"},
  };
}

/// Returns the options about the parts of a layer and the activations that it keeps.
std::vector<OptionSpec> layer_options() {
  return {
      OptionSpec{.key = "elementwise",
                 .default_value = "off",
                 .choices = {"on", "off"},
                 .help =
                     "norms before attention and MLP, softmax of the scores, and gelu or swiglu, "
                     "as ops bound by memory"},
      OptionSpec{.key = "recompute",
                 .default_value = "none",
                 .choices = {"none", "selective", "full"},
                 .help = "activations that backward recomputes instead of keeping: none, selective "
                         "(attention scores and their softmax), or full (all but a layer's input)"},
      fp8_accumulate_option(),
  };
}

/// Returns the options about experts, which replace MLPs.
std::vector<OptionSpec> expert_options() {
  return {
      OptionSpec{.key = "experts",
                 .type = OptionType::integer,
                 .default_value = "0",
                 .minimum = 0,
                 .maximum = 4096,
                 .help =
                     "experts in each layer, each an MLP of the model's size, instead of one MLP; "
                     "0 = none; under weak scaling, experts per rank of ep"},
      OptionSpec{.key = "topk",
                 .type = OptionType::integer,
                 .default_value = "2",
                 .minimum = 1,
                 .maximum = 64,
                 .help = "experts to which each token is sent"},
      OptionSpec{.key = "capacity",
                 .type = OptionType::text,
                 .default_value = "none",
                 .help = "capacity factor of an expert: its tokens per sample over an even share, "
                         "like 1.25 or 125%; tokens beyond it are dropped; none = no limit"},
      OptionSpec{.key = "skew",
                 .type = OptionType::integer,
                 .default_value = "0",
                 .minimum = 0,
                 .maximum = 1000,
                 .help = "how uneven routing is: 0 spreads tokens evenly, else experts are drawn "
                         "by Zipf's law with this exponent in percent"},
      OptionSpec{.key = "expert_batch",
                 .default_value = "exact",
                 .choices = {"exact", "padded"},
                 .help = "exact: one GEMM per expert, of its tokens; padded: one batched GEMM, "
                         "padded to the capacity"},
      OptionSpec{.key = "expert_placement",
                 .default_value = "packed",
                 .choices = {"packed", "spread"},
                 .help = "packed: ranks of an ep group lie next to each other; spread: as far "
                         "apart as those of dp"},
  };
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::vector<OptionSpec> table = [] {
    std::vector<OptionSpec> all;
    for (const auto& group : {data_options(), tensor_options(), pipeline_options(), layer_options(),
                              expert_options()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    return all;
  }();
  return table;
}

}  // namespace isoscale::workloads::stack
