// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <hwloc.h>

#include "base/handle.hpp"

/// Handles that own the objects of hwloc.
namespace isoscale::machine {

struct TopologyTraits {
  using type = hwloc_topology_t;
  static constexpr type null() { return nullptr; }
  static void free(type topology) noexcept { hwloc_topology_destroy(topology); }
};
using Topology = base::Handle<TopologyTraits>;

struct BitmapTraits {
  using type = hwloc_bitmap_t;
  static constexpr type null() { return nullptr; }
  static void free(type bitmap) noexcept { hwloc_bitmap_free(bitmap); }
};
using Bitmap = base::Handle<BitmapTraits>;

}  // namespace isoscale::machine
