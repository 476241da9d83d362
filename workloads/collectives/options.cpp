// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <array>

#include "workloads/collectives/cases.hpp"

namespace isoscale::workloads::collectives {

std::span<const OptionSpec> option_table() {
  static const std::array table{
      OptionSpec{.key = "op",
                 .type = OptionType::list,
                 .default_value = "all_reduce,reduce_scatter,all_gather,broadcast,reduce,"
                                  "all_to_all,gather,scatter,sendrecv,barrier",
                 .choices = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
                             "all_to_all", "gather", "scatter", "sendrecv", "barrier"},
                 .help = "operations to measure; in sendrecv each rank sends to the next on a "
                         "ring"},
      OptionSpec{.key = "sizes",
                 .type = OptionType::text,
                 .default_value = "8..1GiB",
                 .help = "message sizes: a list of sizes and of ranges that double (8..1GiB) or "
                         "grow by a factor (8..1GiB*4), counted as nccl-tests counts them"},
      OptionSpec{.key = "types",
                 .type = OptionType::list,
                 .choices = {"f64", "f32", "f16", "bf16", "e4m3", "e5m2", "i64", "i32", "i8", "u8"},
                 .help = "element types; default: the type that --dtype stores"},
      OptionSpec{.key = "reduction",
                 .type = OptionType::list,
                 .default_value = "sum",
                 .choices = {"sum", "min", "max"},
                 .help = "reductions to measure, for the operations that reduce"},
      OptionSpec{.key = "in_place",
                 .default_value = "both",
                 .choices = {"no", "yes", "both"},
                 .help = "whether results overwrite the data sent; all_to_all, sendrecv and "
                         "barrier are measured out of place only"},
      OptionSpec{.key = "axis",
                 .default_value = "world",
                 .choices = {"world", "tp", "cp", "ep", "dp", "pp"},
                 .help = "ranks that communicate: all of them, or those along an axis of --mesh"},
      OptionSpec{.key = "groups",
                 .default_value = "all",
                 .choices = {"all", "one", "both"},
                 .help = "with axis: all groups along it at once, or the first one alone"},
      OptionSpec{.key = "implementation",
                 .type = OptionType::list,
                 .default_value = "library",
                 .choices = {"library", "ring", "tree", "recursive-doubling"},
                 .help = "the library's collective, or a textbook algorithm made of exchanges and "
                         "additions (all_reduce, all_gather, reduce_scatter)"},
      OptionSpec{.key = "root",
                 .type = OptionType::integer,
                 .default_value = "0",
                 .maximum = 1'000'000,
                 .help = "root of broadcast and the like, as a position in the group"},
      OptionSpec{
          .key = "rotate",
          .type = OptionType::bytes,
          .default_value = "64MiB",
          .help =
              "use new memory in each call until this many bytes, or 256 calls (64 on a GPU), so "
              "that caches do not hold the data"},
  };
  return table;
}

}  // namespace isoscale::workloads::collectives
