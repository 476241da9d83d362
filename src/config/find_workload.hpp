// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>

#include "workloads/workload.hpp"

namespace isoscale::config {

/// The workload of this name among `known`. Throws base::UsageError "PLACE: ..." with the nearest
/// name and all of them.
[[nodiscard]] const workloads::Workload& find_workload(std::string_view name,
                                                       std::string_view place,
                                                       std::span<const workloads::Workload> known);

}  // namespace isoscale::config
