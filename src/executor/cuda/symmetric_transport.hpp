// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <map>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/memory.hpp"

/// Implements Transport::symmetric: checks if it can be used, and prepares the messages that
/// kernels write into the windows of peers, which are memory of other GPUs that this GPU can reach.
namespace isoscale::executor::cuda {

/// Throws Unsupported unless the GPUs of every communicator whose ops use symmetric memory can map
/// each other's windows. Collective over these communicators. Must be called before windows are
/// made, since a window does not show if the windows of peers are mapped.
void require_windows(const program::ProgramSet& set, const Communicators& communicators);

/// Throws Unsupported if NCCL lacks a symmetric kernel for a collective of `set` with
/// Transport::symmetric, or if the ranks of its group do not reach each other's memory: NCCL would
/// silently use another kernel. Also throws Unsupported if the buffers that peers access have
/// different offsets on the ranks of a group. Must be called after windows have been made.
void require_symmetric(const program::ProgramSet& set, const Communicators& communicators);

/// The exchanges of one rank's program that use Transport::symmetric: the arguments of their
/// kernels, and the flag that makes waiting kernels end. The kernels synchronise with those of
/// peers through PutChannels (kernels/kernels.hpp), which lie after the programs' buffers in the
/// symmetric arena. For each communicator that carries links there are as many PutChannels as the
/// longest axis of the mesh has ranks: one for each possible peer.
class Puts {
 public:
  Puts() = default;
  /// Returns the size of all PutChannels in the symmetric arena. It is the same on all ranks, and 0
  /// if no rank has an exchange with Transport::symmetric.
  [[nodiscard]] static units::Bytes room(const program::ProgramSet& set,
                                         const Communicators& communicators);
  /// Throws Unsupported if this GPU does not reach the window of a peer, if an exchange has more
  /// messages than a kernel can handle, or if messages between two ranks are on several streams.
  /// `set` must outlive this object.
  Puts(const program::ProgramSet& set, const Communicators& communicators,
       const Registrations& registrations, const Memory& memory);

  /// Returns the kernel arguments for an exchange with Transport::symmetric. `exchange` must be an
  /// object of the set that the constructor was given, since it is found by its address.
  [[nodiscard]] const PutCall& of(const program::Exchange& exchange) const;
  [[nodiscard]] units::Bytes bytes() const { return bytes_; }  ///< device memory in use

  /// Ends the waits of running kernels, whose peers may be gone; for a session that has failed.
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
