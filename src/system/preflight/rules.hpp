// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "system/preflight/check.hpp"

/// The checks by subject; the results of their rules have no name yet, check_job gives them theirs.
namespace isoscale::system {

[[nodiscard]] std::span<const Check> launch_checks();
[[nodiscard]] std::span<const Check> version_checks();
[[nodiscard]] std::span<const Check> likeness_checks();
[[nodiscard]] std::span<const Check> gpu_error_checks();
[[nodiscard]] std::span<const Check> gpu_state_checks();
[[nodiscard]] std::span<const Check> link_checks();
[[nodiscard]] std::span<const Check> pcie_checks();
[[nodiscard]] std::span<const Check> distance_checks();
[[nodiscard]] std::span<const Check> port_checks();
[[nodiscard]] std::span<const Check> cpu_checks();
[[nodiscard]] std::span<const Check> node_checks();
[[nodiscard]] std::span<const Check> nccl_checks();
[[nodiscard]] std::span<const Check> environment_checks();
[[nodiscard]] std::span<const Check> sniff_checks();

}  // namespace isoscale::system
