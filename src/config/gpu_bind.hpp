// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace isoscale::config {

/// One GPU as --gpu-bind names it.
struct GpuName {
  enum class Kind : std::uint8_t {
    index,       ///< "2", among the visible ones
    uuid,        ///< "GPU-..." or "MIG-..."
    pci_bus_id,  ///< "0000:1b:00.0", or without the domain
  };
  Kind kind = Kind::index;
  std::string text;

  bool operator==(const GpuName&) const = default;
};

/// "2,3,0,1": one GPU for each rank of a node, in the order of their local ranks. Throws
/// base::UsageError with a sentence that begins with the value. The value `auto` is not a list.
[[nodiscard]] std::vector<GpuName> parse_gpu_bind(std::string_view text);

}  // namespace isoscale::config
