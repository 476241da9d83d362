// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>

#include "executor/cuda/handles.hpp"
#include "executor/resolve.hpp"
#include "units/quantity.hpp"

namespace isoscale::executor::cuda {

/// Zeroed device memory. Throws base::Error with need and free when there is not enough.
[[nodiscard]] DeviceMemory allocate_device(units::Bytes bytes);

/// The arenas of one rank's program, one per space.
class Arenas {
 public:
  /// Throws base::Error with need and free when there is not enough, or for a space that no
  /// transport of this executor offers.
  explicit Arenas(const std::array<std::uint64_t, program::space_count>& bytes);

  [[nodiscard]] ArenaPointers pointers() const;
  /// Forgets all without freeing: kernels may still use them.
  void abandon() noexcept;

 private:
  struct FreeTraits {
    using type = void*;
    static type null() { return nullptr; }
    static void free(type pointer) noexcept;
  };

  DeviceMemory device_, managed_;
  PinnedMemory pinned_;
  base::Handle<FreeTraits> pageable_;
};

/// The storage of one rank's program, and the way from its slices to addresses.
struct Memory {
  Memory(const program::RankProgram& program, const mesh::Shape& mesh, int rank);
  ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  program::RankProgram table;  ///< buffers and arena sizes; what resolver reads
  Arenas arenas;
  Resolver resolver;
};

}  // namespace isoscale::executor::cuda
