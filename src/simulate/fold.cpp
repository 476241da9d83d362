// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/fold.hpp"

namespace isoscale::simulate {

program::OutlineSet folded(program::OutlineSet set) {
  for (program::Outline& outline : set.outlines) {
    for (program::OutlineOp& op : outline.ops) {
      op.stream = 0;
      op.wait_begin = op.wait_count = 0;
    }
    outline.waits.clear();
  }
  return set;
}

}  // namespace isoscale::simulate
