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

}  // namespace isoscale::workloads::stack
