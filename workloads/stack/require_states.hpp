// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

/// Throws base::UsageError, with what is given and the nearest that works, when the options about
/// where weights, gradients and optimizer states are kept exclude each other or another option.
void require_states(const Request& scaled);

}  // namespace isoscale::workloads::stack
