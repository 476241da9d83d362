// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

/// Throws base::UsageError, with the numbers and the nearest that works, when options of tensor
/// parallelism exclude each other or when tp or chunks do not divide the rows of a rank.
void require_tensor(const Request& scaled);

}  // namespace isoscale::workloads::stack
