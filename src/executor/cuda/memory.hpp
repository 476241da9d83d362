// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "executor/cuda/communicators.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/kernels/nccl_versions.hpp"
#include "executor/executor.hpp"
#include "executor/resolver.hpp"
#include "units/quantity.hpp"

/// The memory of one rank: arenas, slices in them, and what NCCL knows of it.
namespace isoscale::executor::cuda {

/// Zeroed device memory. Throws base::Error with need and free when there is not enough.
[[nodiscard]] DeviceMemory allocate_device(units::Bytes bytes);

/// Memory and how much of it there is.
struct Area {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

/// The arenas of one rank's program, one per space. Symmetric ones come from NCCL, so that it can
/// make windows on them; so does the device arena when it is to be registered.
class Arenas {
 public:
  /// Throws base::Error with need and free when there is not enough, Unsupported for memory that
  /// this NCCL does not give.
  Arenas(const std::array<std::uint64_t, program::space_count>& bytes, Registration registration);

  [[nodiscard]] Area symmetric() const { return symmetric_area_; }
  [[nodiscard]] Area device() const { return device_area_; }

  [[nodiscard]] ArenaPointers pointers() const;
  /// Forgets all without freeing: kernels may still use them.
  void abandon() noexcept;

 private:
  struct FreeTraits {
    using type = void*;
    static type null() { return nullptr; }
    static void free(type pointer) noexcept;
  };

  struct NcclTraits {
    using type = void*;
    static type null() { return nullptr; }
    static void free(type memory) noexcept;
  };
  using NcclMemory = base::Handle<NcclTraits>;
  [[nodiscard]] static NcclMemory allocate_nccl(units::Bytes bytes);

  DeviceMemory device_, managed_;
  NcclMemory registered_, symmetric_;  ///< the first takes device_'s place
  Area symmetric_area_, device_area_;
  PinnedMemory pinned_;
  base::Handle<FreeTraits> pageable_;
};

/// The storage of one rank's program, and the way from its slices to addresses. `behind` bytes are
/// added to the symmetric arena for the executor's own use, at the same place on all ranks.
struct Memory {
  Memory(const program::ProgramSet& set, int rank, Registration registration,
         units::Bytes behind = units::Bytes{0});
  ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  program::RankProgram table;  ///< buffers and arena sizes; what resolver reads
  Arenas arenas;
  Resolver resolver;
  std::size_t symmetric_end;  ///< bytes of programs in the symmetric arena; alike on all ranks
};

/// True if kernels reach the slice at full speed.
[[nodiscard]] inline bool is_on_device(const Resolver& resolver, const program::Slice& slice) {
  const program::Space space = resolver.space(slice);
  return space == program::Space::device || space == program::Space::managed ||
         space == program::Space::symmetric;
}

/// Throws base::Error, naming the operand by its role, unless kernels reach the slice at full
/// speed.
inline void require_on_device(const Resolver& resolver, const program::Slice& slice,
                              std::string_view role) {
  if (is_on_device(resolver, slice)) return;
  throw base::Error(fmt::format("{} lies in {} memory; only copies and fills may use that", role,
                                program::name(resolver.space(slice))));
}

/// The address of a slice; throws as require_on_device.
inline std::byte* on_device(const Resolver& resolver, const program::Slice& slice,
                            std::string_view role) {
  require_on_device(resolver, slice, role);
  return resolver.address(slice);
}

inline std::byte* on_device(const Resolver& resolver, const program::Matrix& matrix,
                            std::uint64_t rows, std::uint64_t columns, std::string_view role) {
  require_on_device(resolver, matrix.slice, role);
  return resolver.address(matrix, rows, columns, 1);
}

/// The memory of a session that NCCL was told about: windows on the symmetric arena with each
/// communicator whose ops touch it and, if asked for, the device arena with every communicator.
/// They must be taken back before the communicators are closed and before the memory is freed.
class Registrations {
 public:
  Registrations() = default;
  /// Collective over the ranks of the communicators, which are gone through in one order. Throws
  /// Unsupported where NCCL, or this machine, cannot.
  Registrations(const program::ProgramSet& set, const Communicators& communicators,
                const Arenas& arenas, Registration registration);
  ~Registrations();
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;
  Registrations(Registrations&& other) noexcept;
  Registrations& operator=(Registrations&& other) noexcept;

  /// The window that a communicator has on the symmetric arena; null when it has none.
  [[nodiscard]] NcclWindow window(ncclComm_t communicator) const;

  /// Throws NcclError.
  void close();
  /// Forgets all: the communicators are aborted.
  void abandon() noexcept;

 private:
  struct Window {
    ncclComm_t communicator;
    NcclWindow window;
  };
  struct Buffer {
    ncclComm_t communicator;
    void* handle;
  };

  void add_windows(const std::vector<ncclComm_t>& communicators, const Area& area);
  void add_buffers(const std::vector<ncclComm_t>& communicators, const Area& area);

  std::vector<Window> windows_;
  std::vector<Buffer> buffers_;
};

}  // namespace isoscale::executor::cuda
