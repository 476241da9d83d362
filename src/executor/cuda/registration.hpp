// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/memory.hpp"
#include "executor/cuda/nccl_versions.hpp"

namespace isoscale::executor::cuda {

/// What NCCL was told about the memory of a session: windows on the symmetric arena with each
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
