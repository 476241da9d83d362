// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "tests/cuda/standin.hpp"

/// CUDA's opaque handles point to these types.
struct CUgraph_st {
  struct Node {
    isoscale::standin::WorkPointer work;
    std::vector<std::size_t> before;  ///< nodes
  };
  std::vector<Node> nodes;
  std::set<CUstream_st*> streams;  ///< that take part in the capture
  CUstream_st* origin = nullptr;
};

struct CUstream_st {
  std::vector<isoscale::standin::ItemPointer> before;  ///< of what comes next
  CUgraph_st* capture = nullptr;
  std::vector<std::size_t> nodes_before;  ///< in the capture
};

struct CUevent_st {
  bool is_timed = true;
  isoscale::standin::ItemPointer latest;  ///< record; null before the first
  std::shared_ptr<std::int64_t> reached;  ///< when it was done, GPU clock, ns
  CUgraph_st* capture = nullptr;          ///< recorded last within this one
  std::vector<std::size_t> nodes_before;
};

struct CUgraphExec_st {
  std::vector<CUgraph_st::Node> nodes;
  isoscale::standin::ItemPointer last;  ///< end of the launch before
};

namespace isoscale::standin {

/// Remembers the error for cudaGetLastError.
cudaError_t outcome(cudaError_t status);
/// `stream`, or the default one.
[[nodiscard]] CUstream_st& stream_of(cudaStream_t stream);
/// Returns the status of a call that may not be made in a capture, or after a fault.
[[nodiscard]] cudaError_t synchronous_call_status();
/// Runs until `item` is done.
cudaError_t wait_for(const ItemPointer& item);
/// Runs until nothing is left.
cudaError_t drain();
/// The GPU's clock, ns.
[[nodiscard]] std::int64_t gpu_clock();

}  // namespace isoscale::standin
