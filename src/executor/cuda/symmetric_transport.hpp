// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/kernels/put.hpp"
#include "executor/cuda/memory.hpp"

/// Transport::symmetric: if it can be used, and the messages that kernels put into windows of
/// peers.
namespace isoscale::executor::cuda {

/// Throws Unsupported unless the GPUs of every communicator that has symmetric memory to carry map
/// each other's windows. Collective over these; to be asked before windows are made, since windows
/// that are not mapped look like others.
void require_windows(const program::ProgramSet& set, const Communicators& communicators);

/// Throws Unsupported unless NCCL has a symmetric kernel for each collective of `set` that is to
/// use one, and the ranks of its group reach each other's memory: NCCL would silently take another
/// way. To be asked once windows have been made.
void require_symmetric(const program::ProgramSet& set, const Communicators& communicators);

/// The exchanges of one rank's program that travel by Transport::symmetric: what their kernels are
/// told, and the flag that ends them. What two ranks tell each other lies behind the programs'
/// buffers in the symmetric arena, a PutChannel for each link and rank of its group.
class Puts {
 public:
  Puts() = default;
  /// Room that the channels take in the symmetric arena; alike on all ranks, 0 without puts.
  [[nodiscard]] static units::Bytes room(const program::ProgramSet& set,
                                         const Communicators& communicators);
  /// Throws Unsupported where this GPU does not reach the window of a peer, or for an exchange
  /// that has more messages than a kernel takes. `set` must outlive this object.
  Puts(const program::ProgramSet& set, const Communicators& communicators,
       const Registrations& registrations, const Memory& memory);

  /// The call for an exchange of the program that this was made for.
  [[nodiscard]] const PutCall& of(const program::Exchange& exchange) const;
  [[nodiscard]] units::Bytes bytes() const { return bytes_; }  ///< of device memory

  /// Ends the kernels under way, whose peers may be gone: for a session that has failed.
  void stop() noexcept;
  /// Forgets all without freeing, as kernels may still use it.
  void abandon() noexcept;

 private:
  std::map<const program::Exchange*, PutCall> calls_;
  DeviceMemory messages_, done_;
  PinnedMemory stop_;
  units::Bytes bytes_{0};
};

}  // namespace isoscale::executor::cuda
