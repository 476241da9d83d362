// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "base/handle.hpp"
#include "units/quantity.hpp"

namespace isoscale::executor::host {

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
