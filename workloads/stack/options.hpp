// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::stack {

/// Returns the options of every workload that is composed from the stack.
[[nodiscard]] std::span<const OptionSpec> option_table();

// These functions check combinations of options. Each function called require_... throws
// base::UsageError, with the numbers and the nearest values that work.

/// Completes a request at its mesh: strategy=funnel overlaps nothing, so it sets overlap
/// accordingly.
void complete_data_options(Request& scaled);
/// Refuses options for replicas that exclude each other, and a partition with too few microbatches.
void require_data(const Request& scaled);
/// Reduces the blocks of a twin's compression to the size of its tensors and sends all of them, so
/// that the result equals that of one rank.
void shrink_data_options(Request& twin);
/// Removes the options that only replicas have from the single rank that a twin is compared with.
void forget_data_options(Request& one);

/// Refuses options of tensor parallelism that exclude each other, and tp or chunks that do not
/// divide the rows of a rank.
void require_tensor(const Request& scaled);

/// Refuses options for the place of weights, gradients and optimizer states that exclude each other
/// or another option.
void require_states(const Request& scaled);

/// Refuses experts, ep and other options that do not fit each other.
void require_experts(const Request& scaled);

/// Returns the number of experts of a twin: few on each rank, but as many as a token needs.
[[nodiscard]] int small_experts(const Request& request);

}  // namespace isoscale::workloads::stack
