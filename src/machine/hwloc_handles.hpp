// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <hwloc.h>

#include "base/handle.hpp"

/// Handles that own the objects of hwloc.
namespace isoscale::machine {

using Topology = base::Handle<base::GivenBackBy<hwloc_topology_t, hwloc_topology_destroy>>;
using Bitmap = base::Handle<base::GivenBackBy<hwloc_bitmap_t, hwloc_bitmap_free>>;

}  // namespace isoscale::machine
