// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/handles.hpp"

namespace isoscale::executor::cuda {

/// A barrier on the GPUs of ranks that have collectives in a section: an all_reduce of one word on
/// each communicator that any rank uses for them. Ranks pass it within microseconds of each other,
/// while a barrier of their hosts leaves them apart by what these do afterwards. Exchanges have
/// none: it would connect ranks that have no link otherwise, and a link that is silent would take
/// others with it.
class DeviceBarrier {
 public:
  DeviceBarrier() = default;
  DeviceBarrier(const program::ProgramSet& set, const Communicators& communicators);

  /// On `stream`. Its first call for a section makes connections. Throws NcclError.
  void enter(program::Section section, cudaStream_t stream) const;
  /// Forgets what it reduces without freeing, as kernels may still use it.
  void abandon() noexcept { static_cast<void>(word_.release()); }

 private:
  DeviceMemory word_;
  std::vector<std::vector<ncclComm_t>> of_section_;  ///< in one order on all ranks
};

}  // namespace isoscale::executor::cuda
