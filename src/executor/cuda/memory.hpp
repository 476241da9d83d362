// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "executor/cuda/communicators.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/kernels/nccl_versions.hpp"
#include "executor/executor.hpp"
#include "executor/operand_addresses.hpp"
#include "units/quantity.hpp"

/// The memory of one rank: its arenas, one for each memory space, and their registration with NCCL.
namespace isoscale::executor::cuda {

/// Returns zeroed device memory. If there is too little, throws base::Error with the needed and the
/// free amount.
[[nodiscard]] DeviceMemory allocate_device(units::Bytes bytes);

/// The storage of one rank's program: one contiguous arena for each memory space. NCCL allocates
/// the symmetric arena, since its windows (memory that peers can write to directly) require this,
/// and the device arena if it is to be registered.
class Arenas {
 public:
  /// Throws base::Error, with the needed and the free amount, if there is too little memory, and
  /// Unsupported for memory that this NCCL cannot allocate.
  Arenas(const std::array<std::uint64_t, program::space_count>& bytes, Registration registration);

  [[nodiscard]] std::span<std::byte> operator[](program::Space space) const {
    const auto index = static_cast<std::size_t>(space);
    return {pointers_[index], bytes_[index]};
  }
  [[nodiscard]] const ArenaPointers& pointers() const { return pointers_; }
  /// Returns the size of all arenas together.
  [[nodiscard]] units::Bytes bytes() const;
  /// Drops all memory without freeing it: kernels may still use it.
  void abandon() noexcept;

 private:
  using NcclMemory = base::Handle<ReleasedBy<void*, give_memory_back>>;
  [[nodiscard]] static NcclMemory allocate_nccl(units::Bytes bytes);

  DeviceMemory device_, managed_;
  NcclMemory registered_, symmetric_;  ///< registered_ is used in place of device_ if the device
                                       ///< arena is registered
  PinnedMemory pinned_;
  base::Handle<base::GivenBackBy<void*, std::free>> pageable_;
  std::array<std::uint64_t, program::space_count> bytes_;
  ArenaPointers pointers_{};
};

/// The storage of one rank's program, and the addresses of its slices. The symmetric arena has at
/// least `behind` more bytes after the programs' buffers for the executor's own use, at the same
/// offset on all ranks.
struct Memory {
  Memory(const program::ProgramSet& set, int rank, Registration registration,
         units::Bytes behind = units::Bytes{0});

  Arenas arenas;
  Resolver resolver;
  std::size_t symmetric_end;  ///< offset of the `behind` bytes in the symmetric arena; same on all
                              ///< ranks
};

/// True if the slice is in device, managed or symmetric memory, which kernels access at full speed.
[[nodiscard]] inline bool is_on_device(const Resolver& resolver, const program::Slice& slice) {
  const program::Space space = resolver.space(slice);
  return space == program::Space::device || space == program::Space::managed ||
         space == program::Space::symmetric;
}

/// Throws base::Error, which names the operand by `role`, unless is_on_device().
inline void require_on_device(const Resolver& resolver, const program::Slice& slice,
                              std::string_view role) {
  if (is_on_device(resolver, slice)) return;
  throw base::Error(
      fmt::format("{} lies in {} memory; only copies, fills and checksums may use that", role,
                  program::name(resolver.space(slice))));
}

/// The registrations of a session's memory with NCCL. The symmetric arena is registered as a
/// window, to which peers can write, with each communicator whose ops touch the arena. The device
/// arena is registered with every communicator, if Registration::local asks for it. Registrations
/// must be undone before the communicators are closed and before the memory is freed.
class Registrations {
 public:
  Registrations() = default;
  /// Collective over the ranks of each communicator; all ranks register in the same order. Throws
  /// Unsupported if NCCL, or this machine, cannot register memory.
  Registrations(const program::ProgramSet& set, const Communicators& communicators,
                const Arenas& arenas, Registration registration);
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;
  Registrations(Registrations&& other) noexcept;
  Registrations& operator=(Registrations&& other) noexcept;

  /// Returns a communicator's window on the symmetric arena; null if it has none.
  [[nodiscard]] NcclWindow window(ncclComm_t communicator) const;

  /// Undoes the registrations. Throws NcclError.
  void close();
  /// Forgets all registrations without undoing them, for communicators that are aborted.
  void abandon() noexcept;

 private:
  std::vector<std::pair<ncclComm_t, NcclWindow>> windows_;
  std::vector<std::pair<ncclComm_t, void*>> buffers_;  ///< second member: NCCL's handle
};

}  // namespace isoscale::executor::cuda
