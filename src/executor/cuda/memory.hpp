// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>

#include "executor/cuda/handles.hpp"
#include "executor/executor.hpp"
#include "executor/resolver.hpp"
#include "units/quantity.hpp"

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

}  // namespace isoscale::executor::cuda
