// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

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

/// What processes of this node may still take: the least of the system's available memory and of
/// what is left below the limits of the control groups this process is in. nullopt where neither is
/// told. `root` is "/" but for tests.
[[nodiscard]] std::optional<units::Bytes> free_memory(const std::filesystem::path& root = "/");

}  // namespace isoscale::executor::host
