// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "base/error.hpp"

namespace isoscale::machine {

/// Memory cannot be placed as it was asked for.
class PlacementError : public base::Error {
 public:
  using Error::Error;
};

/// While it lives, pages that the calling thread touches first lie on one NUMA node, whose number
/// is the operating system's. Throws PlacementError when there is no such node, or when the system
/// does not let this process choose.
class MemoryOnNode {
 public:
  explicit MemoryOnNode(int node);
  ~MemoryOnNode();
  MemoryOnNode(const MemoryOnNode&) = delete;
  MemoryOnNode& operator=(const MemoryOnNode&) = delete;

 private:
  struct Before;
  std::unique_ptr<const Before> before_;  ///< what held before; hwloc stays out of this header
};

}  // namespace isoscale::machine
