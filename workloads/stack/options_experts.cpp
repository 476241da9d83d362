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

}  // namespace isoscale::workloads::stack
