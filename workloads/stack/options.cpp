// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/options.hpp"

#include <array>

namespace isoscale::workloads::stack {

std::span<const OptionSpec> option_table() {
  static const std::array table{
      OptionSpec{.key = "batch",
                 .type = OptionType::integer,
                 .minimum = 1,
                 .maximum = 1'000'000'000,
                 .help = "samples per step = dp x microbatch x microbatches (of one dp replica "
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
      OptionSpec{.key = "tp_output",
                 .default_value = "reduce",
                 .choices = {"reduce", "gather"},
                 .help =
                     "second GEMM of each pair: row-parallel with all-reduce, or column-parallel "
                     "with all-gather"},
      OptionSpec{.key = "schedule",
                 .default_value = "1f1b",
                 .choices = {"gpipe", "1f1b"},
                 .help = "order of forward and backward microbatches on a pipeline stage"},
      OptionSpec{.key = "input",
                 .default_value = "resident",
                 .choices = {"resident", "pinned", "pageable"},
                 .help =
                     "where each microbatch's input waits: on the device, or in host memory from "
                     "which it is copied, one ahead"},
      OptionSpec{.key = "vocabulary",
                 .default_value = "off",
                 .choices = {"on", "off"},
                 .help = "the output projection on the last stage (makes stages unequal)"},
      OptionSpec{.key = "optimizer",
                 .default_value = "sgd",
                 .choices = {"sgd", "adam"},
                 .help = "what updates the weights, bucket by bucket"},
  };
  return table;
}

}  // namespace isoscale::workloads::stack
