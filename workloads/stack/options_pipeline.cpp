// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/option_groups.hpp"

namespace isoscale::workloads::stack {

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

}  // namespace isoscale::workloads::stack
