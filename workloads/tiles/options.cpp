// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/tiles/options.hpp"

#include <array>

namespace isoscale::workloads::tiles {

std::span<const OptionSpec> option_table() {
  static const std::array table{
      OptionSpec{.key = "image",
                 .type = OptionType::text,
                 .default_value = "128",
                 .help = "pixels of a side, or rows x columns (256x512): of the whole image, under "
                         "weak scaling of each tile"},
      OptionSpec{.key = "channels",
                 .type = OptionType::integer,
                 .default_value = "32",
                 .minimum = 1,
                 .maximum = 65'536,
                 .help = "values of a pixel, in every layer"},
      OptionSpec{.key = "kernel",
                 .default_value = "3",
                 .choices = {"3", "5"},
                 .help = "side of the convolution's window; a halo is half of it wide, rounded "
                         "down"},
      OptionSpec{.key = "layers",
                 .type = OptionType::integer,
                 .default_value = "4",
                 .minimum = 1,
                 .maximum = 10'000,
                 .help = "convolutions that follow each other"},
      OptionSpec{.key = "batch",
                 .type = OptionType::integer,
                 .default_value = "4",
                 .minimum = 1,
                 .maximum = 1'000'000,
                 .help = "images per step (of one dp replica under weak scaling)"},
      OptionSpec{.key = "boundary",
                 .default_value = "periodic",
                 .choices = {"periodic", "fixed"},
                 .help = "outside the image: its other side, or zeros"},
      OptionSpec{.key = "overlap",
                 .default_value = "on",
                 .choices = {"on", "off"},
                 .help = "halos and gradients travel on streams of their own while the interior is "
                         "computed, or all in turn"},
      OptionSpec{
          .key = "bucket",
          .type = OptionType::bytes,
          .default_value = "25MiB",
          .help = "bytes of gradients that travel in one all-reduce, at least; whole layers"},
      OptionSpec{.key = "optimizer",
                 .default_value = "sgd",
                 .choices = {"sgd", "adam"},
                 .help = "what updates the weights, bucket by bucket"},
  };
  return table;
}

}  // namespace isoscale::workloads::tiles
