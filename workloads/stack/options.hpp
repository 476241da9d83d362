// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/api/options.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads::stack {

/// Returns the options of all workloads that use the stack.
[[nodiscard]] std::span<const OptionSpec> option_table();

// The functions below check combinations of options. Those called require_... throw
// base::UsageError, with the numbers and the nearest values that work.

/// Completes the options of a request on its mesh: strategy=funnel overlaps nothing, so `overlap`
/// is set accordingly.
void complete_data_options(Request& scaled);
/// Throws base::UsageError for options about replicas that exclude each other, and for a partition
/// with too few microbatches.
void require_data(const Request& scaled);
/// Adapts compression to a twin: blocks become as small as its tensors, and all their elements are
/// sent, so that the result equals that of a single rank.
void shrink_data_options(Request& twin);
/// Removes the options about replicas from the request of the single rank with which a twin is
/// compared.
void forget_data_options(Request& one);

/// Throws base::UsageError for options about tensor parallelism that exclude each other, and if tp
/// or chunks do not divide the rows of a rank.
void require_tensor(const Request& scaled);

/// Throws base::UsageError for options about where weights, gradients and optimizer states are
/// kept, if they exclude each other or another option.
void require_states(const Request& scaled);

/// Throws base::UsageError for options about experts that do not fit ep or another option.
void require_experts(const Request& scaled);

/// Returns the number of experts of a twin: few on each rank, but at least as many as each token
/// needs.
[[nodiscard]] int small_experts(const Request& request);

}  // namespace isoscale::workloads::stack
