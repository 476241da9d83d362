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
                 .help = "samples per step = dp x ep x microbatch x microbatches (of one replica "
                         "under weak scaling); "
                         "give any two of the three (default microbatch 4, microbatches 16)"},
      OptionSpec{.key = "microbatch",
                 .type = OptionType::integer,
                 .minimum = 1,
                 .maximum = 1'000'000,
                 .help = "samples that go through the stack at once"},
      OptionSpec{.key = "microbatches",
                 .type = OptionType::integer,
                 .minimum = 1,
                 .maximum = 100'000,
                 .help = "microbatches per step and dp replica (at dp = 1 under strong scaling); "
                         "gradients accumulate over them"},
      OptionSpec{.key = "input",
                 .default_value = "resident",
                 .choices = {"resident", "pinned", "pageable"},
                 .help =
                     "where each microbatch's input waits: on the device, or in host memory from "
                     "which it is copied, one ahead"},
      OptionSpec{.key = "strategy",
                 .default_value = "ddp",
                 .choices = {"ddp", "funnel"},
                 .help = "ddp: replicas all-reduce gradients; funnel: the first replica scatters "
                         "inputs, gathers outputs, reduces gradients, updates and broadcasts "
                         "weights, the baseline that a single process driving all devices is"},
      OptionSpec{.key = "partition",
                 .type = OptionType::text,
                 .default_value = "equal",
                 .help = "how microbatches are dealt to dp replicas: equal, proportional (to the "
                         "speed that each is measured to have just before) or skewed:X (the first "
                         "gets X times what each other one gets)"},
      OptionSpec{.key = "overlap",
                 .default_value = "on",
                 .choices = {"on", "off"},
                 .help = "all-reduce gradient buckets on their own stream while backward goes on, "
                         "or after it"},
      OptionSpec{
          .key = "bucket",
          .type = OptionType::bytes,
          .default_value = "25MiB",
          .help = "bytes of gradients that travel in one all-reduce, at least; whole tensors"},
      OptionSpec{.key = "grad_dtype",
                 .default_value = "same",
                 .choices = {"same", "bf16", "f16"},
                 .help = "the type in which gradients travel and are added up between replicas: "
                         "that in which they accumulate, or a narrow one"},
      OptionSpec{.key = "compression",
                 .default_value = "none",
                 .choices = {"none", "topk"},
                 .help = "topk: replicas send each other the largest gradients of each block only "
                         "and keep the rest for the next step"},
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
                 .help = "consecutive gradients of which compression=topk takes the largest"},
      OptionSpec{.key = "zero",
                 .default_value = "0",
                 .choices = {"0", "1", "2", "3"},
                 .help =
                     "stage of ZeRO over dp: 1 shards optimizer states and masters, 2 gradients "
                     "too, 3 weights too; nothing to do where dp is 1"},
      OptionSpec{.key = "reduce_bucket",
                 .type = OptionType::bytes,
                 .help = "with zero=1|2: bytes of gradients in one reduce-scatter, at least; whole "
                         "tensors (default: bucket)"},
      OptionSpec{.key = "gather_bucket",
                 .type = OptionType::bytes,
                 .help =
                     "with zero=3: bytes of weights in one all-gather, at least; whole tensors, "
                     "whose gradients are reduce-scattered at once too (default: bucket)"},
      OptionSpec{.key = "prefetch",
                 .type = OptionType::integer,
                 .default_value = "1",
                 .minimum = 0,
                 .maximum = 1000,
                 .help = "how many buckets (zero=3) or layers (offload=weights) of weights come "
                         "ahead of the one in use; each takes device memory"},
      OptionSpec{.key = "offload",
                 .default_value = "none",
                 .choices = {"none", "weights", "optimizer"},
                 .help = "what waits in host memory: weights, copied to the device layer by layer, "
                         "or masters and moments, copied in and out bucket by bucket"},
      OptionSpec{.key = "offload_memory",
                 .default_value = "pinned",
                 .choices = {"pinned", "managed"},
                 .help = "offload to pinned memory with copies, or to unified memory with advice "
                         "and prefetches"},
      OptionSpec{.key = "optimizer",
                 .default_value = "sgd",
                 .choices = {"sgd", "adam"},
                 .help = "what updates the weights, bucket by bucket"},
  };
}

}  // namespace isoscale::workloads::stack
