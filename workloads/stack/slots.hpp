// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <deque>

#include "program/builder.hpp"

namespace isoscale::workloads::stack {

/// Buffers of one kind that are used in turn. Streams that take turns on them wait for each other,
/// where storage of buffers that come and go would not be used again: the builder gives storage to
/// no op that would have to wait for it.
class Slots {
 public:
  /// `least` are made before one is used again.
  Slots(program::Builder& builder, const program::Buffer& kind, std::size_t least)
      : builder_(&builder), kind_(kind), least_(least) {}

  /// The one that has been free for longest; a new one where there are few, or none is free.
  [[nodiscard]] program::BufferId take() {
    if (made_ < least_ || free_.empty()) {
      ++made_;
      return builder_->allocate(kind_);
    }
    const program::BufferId slot = free_.front();
    free_.pop_front();
    return slot;
  }
  /// Ops that are written later may write to it.
  void give_back(program::BufferId slot) { free_.push_back(slot); }
  /// None is used again, and all have been given back.
  void release() {
    for (const program::BufferId slot : free_) builder_->release(slot);
    free_.clear();
  }

 private:
  program::Builder* builder_;
  program::Buffer kind_;
  std::size_t least_, made_ = 0;
  std::deque<program::BufferId> free_;
};

}  // namespace isoscale::workloads::stack
