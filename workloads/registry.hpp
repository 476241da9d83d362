// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>

#include "workloads/api/workload.hpp"

/// The table of all workloads.
namespace isoscale::workloads {

/// Returns the workloads in the order of `isoscale list workloads`.
[[nodiscard]] std::span<const Workload> registry();
/// Returns the workload of this name. If there is none, throws base::UsageError with all names and,
/// if one is similar, that name as a suggestion.
[[nodiscard]] const Workload& find_workload(std::string_view name);

}  // namespace isoscale::workloads
