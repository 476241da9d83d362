// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/describe.hpp"

namespace isoscale::executor {

std::string describe(const program::Op& op, std::uint32_t index) {
  std::string text =
      fmt::format("op {}, {} ({}", index, program::name(program::kind_of(op.payload)),
                  program::name(op.place.phase));
  if (op.place.layer >= 0) text += fmt::format(", layer {}", op.place.layer);
  if (op.place.microbatch >= 0) text += fmt::format(", microbatch {}", op.place.microbatch);
  return text + ")";
}

}  // namespace isoscale::executor
