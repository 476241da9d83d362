// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

/// Throws base::UsageError, with the numbers and the nearest that works, unless experts, ep and the
/// other options fit each other.
void require_experts(const Request& scaled);

/// Experts of a small relative: few a rank, as many as a token needs.
[[nodiscard]] int small_experts(const Request& request);

}  // namespace isoscale::workloads::stack
