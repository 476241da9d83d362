// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/ranges.hpp"

#include <nvtx3/nvToolsExt.h>

#include "program/op.hpp"

namespace isoscale::executor::cuda {

Range::Range(const char* name) : is_open_(name != nullptr) {
  if (is_open_) nvtxRangePushA(name);
}

Range::~Range() {
  if (is_open_) nvtxRangePop();
}

std::vector<OpRange> ranges_of(const program::Program& section) {
  std::vector<OpRange> ranges;
  ranges.reserve(section.ops.size());
  for (const program::Op& op : section.ops) {
    ranges.push_back(
        {.phase = op.place.phase, .name = program::label(program::kind_of(op.payload), op.place)});
  }
  return ranges;
}

Range SectionRanges::op(std::size_t index) {
  if (ops_.empty()) return Range{nullptr};
  const OpRange& at = ops_[index];
  if (current_ != at.phase) {
    phase_.reset();  // closes the last one before the next one opens
    phase_.emplace(std::string{program::name(at.phase)}.c_str());
    current_ = at.phase;
  }
  return Range{at.name.c_str()};
}

}  // namespace isoscale::executor::cuda
