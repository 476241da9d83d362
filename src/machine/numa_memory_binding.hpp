// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "base/error.hpp"

namespace isoscale::machine {

/// Thrown if memory cannot be placed on the requested NUMA node.
class PlacementError : public base::Error {
 public:
  using Error::Error;
};

/// While an object of this class exists, pages are placed on one NUMA node, given by the operating
/// system's number, if the calling thread is the first to touch them. The constructor throws
/// PlacementError if there is no such node, or if the system does not let this process choose.
class MemoryOnNode {
 public:
  explicit MemoryOnNode(int node);
  ~MemoryOnNode();
  MemoryOnNode(const MemoryOnNode&) = delete;
  MemoryOnNode& operator=(const MemoryOnNode&) = delete;

 private:
  struct Before;
  std::unique_ptr<const Before> before_;  ///< the policy to restore; defined in the .cpp to keep
                                          ///< hwloc out of this header
};

}  // namespace isoscale::machine
