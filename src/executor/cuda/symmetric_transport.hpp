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

/// Transport::symmetric: checks if it can be used, and the messages that kernels put into windows
/// of peers.
namespace isoscale::executor::cuda {

/// Throws Unsupported unless the GPUs of every communicator that carries symmetric memory map each
/// other's windows. Collective over these communicators. Must be called before windows are made,
/// since windows that are not mapped look like others.
void require_windows(const program::ProgramSet& set, const Communicators& communicators);

/// Throws Unsupported unless NCCL has a symmetric kernel for each collective of `set` that must use
/// one, and the ranks of its group reach each other's memory: NCCL would silently use another
/// kernel. Must be called after windows have been made.
void require_symmetric(const program::ProgramSet& set, const Communicators& communicators);

/// The exchanges of one rank's program that use Transport::symmetric: the arguments of their
/// kernels, and the flag that ends their waits. The words that two ranks exchange lie after the
/// programs' buffers in the symmetric arena, one PutChannel for each link and rank of its group.
class Puts {
 public:
  Puts() = default;
  /// Returns the size of the channels in the symmetric arena; the same on all ranks, 0 without
  /// puts.
  [[nodiscard]] static units::Bytes room(const program::ProgramSet& set,
                                         const Communicators& communicators);
  /// Throws Unsupported if this GPU does not reach the window of a peer, or for an exchange that
  /// has more messages than a kernel takes. `set` must outlive this object.
  Puts(const program::ProgramSet& set, const Communicators& communicators,
       const Registrations& registrations, const Memory& memory);

  /// Returns the call for an exchange of the program that this was made for.
  [[nodiscard]] const PutCall& of(const program::Exchange& exchange) const;
  [[nodiscard]] units::Bytes bytes() const { return bytes_; }  ///< of device memory

  /// Ends the waits of running kernels, whose peers may be gone: for a session that has failed.
  void stop() noexcept;
  /// Drops all memory without freeing it, as kernels may still use it.
  void abandon() noexcept;

 private:
  std::map<const program::Exchange*, PutCall> calls_;
  DeviceMemory messages_, done_;
  PinnedMemory stop_;
  units::Bytes bytes_{0};
};

}  // namespace isoscale::executor::cuda
