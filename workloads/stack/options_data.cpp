// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/option_groups.hpp"

namespace isoscale::workloads::stack {

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

}  // namespace isoscale::workloads::stack
