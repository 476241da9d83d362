// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/stack/option_groups.hpp"

namespace isoscale::workloads::stack {

std::vector<OptionSpec> expert_options() {
  return {
      OptionSpec{.key = "experts",
                 .type = OptionType::integer,
                 .default_value = "0",
                 .minimum = 0,
                 .maximum = 4096,
                 .help =
                     "experts of a layer, each with an MLP of the model's width, in the place of "
                     "its MLP; 0 = none; under weak scaling those of one rank of ep"},
      OptionSpec{.key = "topk",
                 .type = OptionType::integer,
                 .default_value = "2",
                 .minimum = 1,
                 .maximum = 64,
                 .help = "experts that a token goes to"},
      OptionSpec{.key = "capacity",
                 .type = OptionType::text,
                 .default_value = "none",
                 .help = "tokens of a sample that an expert takes, in even shares, like 1.25 or "
                         "125%; later ones are dropped there; none = all"},
      OptionSpec{.key = "skew",
                 .type = OptionType::integer,
                 .default_value = "0",
                 .minimum = 0,
                 .maximum = 1000,
                 .help = "how uneven routing is: 0 deals tokens out evenly, else experts are drawn "
                         "by Zipf's law with this exponent in percent"},
      OptionSpec{.key = "expert_batch",
                 .default_value = "exact",
                 .choices = {"exact", "padded"},
                 .help = "a GEMM for each expert with the rows it has, or one batched GEMM, padded "
                         "to the capacity"},
      OptionSpec{.key = "expert_placement",
                 .default_value = "packed",
                 .choices = {"packed", "spread"},
                 .help = "ranks of an ep group beside each other, or as far apart as those of dp"},
  };
}

}  // namespace isoscale::workloads::stack
