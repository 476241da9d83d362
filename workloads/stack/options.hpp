// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::stack {

/// The options of every workload that is composed from the stack.
[[nodiscard]] std::span<const OptionSpec> option_table();

// Options that meet each other. Each of the functions that are called require_... throws
// base::UsageError, with the numbers and the nearest values that work.

/// Completes a request at its mesh: strategy=funnel overlaps nothing, and overlap says so.
void complete_data_options(Request& scaled);
/// Refuses options about replicas that exclude each other, and a partition with too little to deal.
void require_data(const Request& scaled);
/// Makes the blocks of compression of a twin as small as its tensors and sends all of them, so that
/// the result is one rank's.
void shrink_data_options(Request& twin);
/// Removes what only replicas do from the one rank that a twin is compared with.
void forget_data_options(Request& one);

/// Refuses options of tensor parallelism that exclude each other, and tp or chunks that do not
/// divide the rows of a rank.
void require_tensor(const Request& scaled);

/// Refuses options about where weights, gradients and optimizer states are kept that exclude each
/// other or another option.
void require_states(const Request& scaled);

/// Refuses experts, ep and other options that do not fit each other.
void require_experts(const Request& scaled);

/// The experts of a twin: few on each rank, but as many as a token needs.
[[nodiscard]] int small_experts(const Request& request);

}  // namespace isoscale::workloads::stack
