// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "system/preflight/job_facts.hpp"

/// Ports of adapters as the job means them: which it was told to use, and which are near its GPUs.
namespace isoscale::system {

/// What a list of NCCL_IB_HCA makes of a port: leaves it out, lets it be used, or names its adapter
/// in full, so that it is meant.
enum class Naming : std::uint8_t { left_out, usable, named };
/// The list as NCCL reads it: "^" leaves the named ones out, "=" wants whole names, else names
/// begin so; "mlx5_0:1" is a port.
[[nodiscard]] Naming naming_of(std::string_view list, const CheckedPort& port);
/// Parts of a list of NCCL_IB_HCA that no port of the node has.
[[nodiscard]] std::vector<std::string> unknown_adapters(std::string_view list,
                                                        const CheckedNode& node);

/// Place in what closest_on_paths can say, from near to far; nullopt where it says nothing.
[[nodiscard]] std::optional<std::size_t> distance_between(const CheckedGpu& gpu,
                                                          const CheckedPort& port);
/// "one switch", "several switches", "host bridge", "NUMA node", "system"
[[nodiscard]] std::string_view distance_name(std::size_t distance);

struct Nearest {
  std::size_t distance = 0;               ///< as distance_between has it
  std::vector<const CheckedPort*> ports;  ///< all that are as near
};
/// The ports nearest to a GPU among those of its node that are up; nullopt where none has a known
/// distance.
[[nodiscard]] std::optional<Nearest> nearest_ports(const CheckedGpu& gpu, const CheckedNode& node);

}  // namespace isoscale::system
