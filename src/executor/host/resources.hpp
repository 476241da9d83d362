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

// The calls that are not in the BLAS standard have one source per library, picked by CMake.

/// Sets the number of threads that a BLAS call of this process uses; returns what is in force,
/// 0 when the library does not tell.
int set_blas_threads(int threads);

[[nodiscard]] std::string blas_name();  ///< "OpenBLAS 0.3.21 (SkylakeX)"

/// Vector instructions that a CPU has.
enum class Vectors : std::uint8_t { unknown, avx2, avx512 };
/// Tells the user when OpenBLAS multiplies with kernels of `core` ("Prescott") on a CPU that
/// has `vectors`: one that the library is too old to know gets the oldest. "" when all is well.
[[nodiscard]] std::string kernel_warning(std::string_view core, Vectors vectors);
/// The same for this process; "" where the library does not tell.
[[nodiscard]] std::string blas_warning();

/// Logical CPUs that are for this rank: those it may run on, unless they are more than its share of
/// the node's, for then it is not bound and shares them with the node's other ranks. No more than
/// its part of `quota`, the CPUs' worth of time that a control group leaves the node's ranks. At
/// least 1 when it shares, and then 1 means "at most 1".
[[nodiscard]] int cores_of_rank(int allowed, int on_node, int ranks_on_node,
                                std::optional<double> quota);

/// The same for the calling thread, by its affinity mask and control groups.
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
/// no play pays for them. Empty for 0 bytes. Throws base::Error that names the need and what is
/// free.
[[nodiscard]] Storage allocate(units::Bytes bytes);

}  // namespace isoscale::executor::host
