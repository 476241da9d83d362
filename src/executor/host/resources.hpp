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

// The functions that are not in the BLAS standard have one source per library, selected by CMake.

/// Sets the number of threads that a BLAS call of this process uses; returns the number in force, 0
/// if the library does not tell.
int set_blas_threads(int threads);

[[nodiscard]] std::string blas_name();  ///< "OpenBLAS 0.3.21 (SkylakeX)"

/// The vector instructions of a CPU.
enum class Vectors : std::uint8_t { unknown, avx2, avx512 };
/// Returns a warning for the user if OpenBLAS multiplies with the kernels for `core` ("Prescott")
/// on a CPU that has `vectors`: a CPU that is too new for the library gets the oldest kernels. ""
/// if there is nothing to warn of.
[[nodiscard]] std::string kernel_warning(std::string_view core, Vectors vectors);
/// Returns the warning for this process; "" if the library does not tell its kernels.
[[nodiscard]] std::string blas_warning();

/// Returns the number of logical CPUs for this rank: those that it may run on, unless they are more
/// than its share of the node's, for then the rank is not bound and shares them with the node's
/// other ranks. It is also limited to its part of `quota`, the CPUs' worth of time that a control
/// group leaves the node's ranks. It is at least 1 for ranks that share, and then 1 means "at most
/// 1".
[[nodiscard]] int cores_of_rank(int allowed, int on_node, int ranks_on_node,
                                std::optional<double> quota);

/// Does the same for the calling thread, from its affinity mask and control groups.
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

/// Page-aligned zeroed memory, owned.
using Storage = base::Handle<MappingTraits>;

/// Maps `bytes` and touches every page on the calling thread, so that they lie on its NUMA node and
/// no play includes the page faults. Empty for 0 bytes. Throws base::Error, which names the need
/// and the free memory.
[[nodiscard]] Storage allocate(units::Bytes bytes);

}  // namespace isoscale::executor::host
