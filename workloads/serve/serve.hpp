// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "workloads/workload.hpp"

/// Serving: dp replicas that answer requests as they come. What a replica computes is a program;
/// which one it plays next depends on what has arrived, and is the runner's to choose.
namespace isoscale::workloads::serve {

/// The name in the registry, by which the runner knows what to play in its own way.
inline constexpr std::string_view workload_name = "serve";

/// One session with the programs of all replicas, and neither cases nor rows: these are the
/// runner's, as they depend on when requests are answered.
[[nodiscard]] BenchHooks hooks();

/// What one replica plays, on a mesh without dp: for each batch size of sizes_of() a prefill and a
/// decode of each token after the first, which prefill answers.
[[nodiscard]] program::ProgramSet replica_programs(const Request& request);
/// Batch size number `size`; token 0 is prefill.
[[nodiscard]] program::Section section_of(std::size_t size, std::uint64_t token,
                                          std::uint64_t output);

}  // namespace isoscale::workloads::serve
