// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/handle.hpp"
#include "units/quantity.hpp"

/// The resources of a rank on its node: BLAS threads, cores and memory.
namespace isoscale::executor::host {

// set_blas_threads(), blas_name() and blas_warning() call functions of a BLAS library that are not
// in the BLAS standard. Each supported library has a source file that defines the three. CMake
// selects this file or, for other libraries, blas_setup_other.cpp, in which they call no library.

/// Sets the number of threads that a BLAS call of this process uses, and returns the number now in
/// use. Does nothing and returns 0 if the library is not a supported one.
int set_blas_threads(int threads);

[[nodiscard]] std::string blas_name();  ///< for example "OpenBLAS 0.3.21 (SkylakeX)"

/// The widest vector instructions of a CPU.
enum class Vectors : std::uint8_t { unknown, avx2, avx512 };
/// Returns a warning for the user if OpenBLAS multiplies with old kernels (`core`, for example
/// "Prescott") although the CPU has the instructions `vectors`. This happens if the CPU is newer
/// than the library. Returns "" if there is no reason to warn.
[[nodiscard]] std::string kernel_warning(std::string_view core, Vectors vectors);
/// Returns kernel_warning() for this process's BLAS; "" if there is none, or if the library does
/// not name its kernels.
[[nodiscard]] std::string blas_warning();

/// Returns the number of logical CPUs that this rank can use, at least 1. `allowed` is the number
/// of CPUs on which the rank may run, `on_node` the number of CPUs of the node. If `allowed` is
/// more than the rank's share `on_node / ranks_on_node`, the rank counts as not bound, and
/// `allowed` is divided by `ranks_on_node`. `quota` is the number of CPUs whose time a control
/// group grants to all ranks of the node together; absent: no limit. The result is at most an equal
/// share of the quota.
[[nodiscard]] int cores_of_rank(int allowed, int on_node, int ranks_on_node,
                                std::optional<double> quota);

/// Returns cores_of_rank() for the calling thread, from its affinity mask and control groups.
[[nodiscard]] int cores_of_this_rank(int ranks_on_node);

struct Mapping {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  bool operator==(const Mapping&) const = default;
};

struct MappingTraits {
  using type = Mapping;
  static type null() { return {}; }
  static void free(type mapping) noexcept;
};

/// Page-aligned memory, initially zero, which the handle owns.
using Storage = base::Handle<MappingTraits>;

/// Allocates `bytes` of memory. The calling thread writes to every page, so that the pages lie on
/// its NUMA node and no measurement has page faults. Returns empty storage for 0 bytes. Throws
/// base::Error, which gives the needed and the free amount, if the system refuses the memory.
[[nodiscard]] Storage allocate(units::Bytes bytes);

}  // namespace isoscale::executor::host
