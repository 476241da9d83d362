// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/option_groups.hpp"

namespace isoscale::workloads::stack {

std::vector<OptionSpec> tensor_options() {
  return {
      OptionSpec{.key = "tp_output",
                 .default_value = "reduce",
                 .choices = {"reduce", "gather"},
                 .help =
                     "second GEMM of each pair: row-parallel with all-reduce, or column-parallel "
                     "with all-gather"},
      OptionSpec{.key = "sequence_parallel",
                 .default_value = "off",
                 .choices = {"on", "off"},
                 .help = "between the pairs of GEMMs each tp rank has 1/tp of the rows: all-gather "
                         "before a pair and reduce-scatter after it instead of an all-reduce"},
      OptionSpec{.key = "chunks",
                 .type = OptionType::integer,
                 .default_value = "1",
                 .minimum = 1,
                 .maximum = 1024,
                 .help = "parts in which a pair's rows travel over tp, each under the GEMM of the "
                         "next"},
      OptionSpec{.key = "ring",
                 .default_value = "off",
                 .choices = {"on", "off"},
                 .help = "with sequence_parallel=on: rows go round the tp group one rank's part at "
                         "a time, under the GEMMs of the parts that are there"},
      OptionSpec{.key = "transport",
                 .default_value = "nccl",
                 .choices = {"nccl", "symmetric"},
                 .help = "how what tp communicates and what stages hand over travels: nccl, or "
                         "symmetric memory (NCCL's symmetric kernels, and puts by a kernel of our "
                         "own; --device cuda, NVLink)"},
      OptionSpec{.key = "vocabulary",
                 .default_value = "off",
                 .choices = {"on", "off"},
                 .help = "the output projection on the last stage (makes stages unequal)"},
  };
}

}  // namespace isoscale::workloads::stack
