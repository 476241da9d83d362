// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/option_groups.hpp"

namespace isoscale::workloads::stack {

std::vector<OptionSpec> pipeline_options() {
  return {
      OptionSpec{.key = "schedule",
                 .default_value = "1f1b",
                 .choices = {"gpipe", "1f1b", "interleaved", "zb-h1"},
                 .help = "order of forward and backward microbatches on a pipeline stage; zb-h1 "
                         "puts weight gradients off"},
      OptionSpec{.key = "v",
                 .type = OptionType::integer,
                 .default_value = "2",
                 .minimum = 1,
                 .maximum = 1000,
                 .help = "virtual stages of a rank under schedule=interleaved; microbatches must "
                         "divide by pp"},
      OptionSpec{.key = "stage_layers",
                 .type = OptionType::text,
                 .default_value = "equal",
                 .help = "layers of the stages: equal (pp divides them), nearest (the first ones "
                         "one more), or the number of each virtual stage, like 7,8,8,7"},
      OptionSpec{.key = "handover",
                 .default_value = "whole",
                 .choices = {"whole", "scattered"},
                 .help = "between stages each rank of tp sends the whole activation, or its part, "
                         "gathered over tp where it arrives"},
  };
}

}  // namespace isoscale::workloads::stack
