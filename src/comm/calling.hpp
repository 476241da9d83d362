// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

#include "comm/world.hpp"

namespace isoscale::comm {

/// A collective call while it lasts.
class Calling {
 public:
  explicit Calling(CallCount* calls) : calls_(calls) {
    if (calls_ != nullptr) calls_->begun.fetch_add(1, std::memory_order_relaxed);
  }
  ~Calling() {
    if (calls_ != nullptr) calls_->ended.fetch_add(1, std::memory_order_relaxed);
  }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  CallCount* calls_;
};

}  // namespace isoscale::comm
