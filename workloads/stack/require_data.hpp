// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "workloads/workload.hpp"

/// The options that say how replicas share work, where they meet each other.
namespace isoscale::workloads::stack {

/// Of a request at its mesh: strategy=funnel overlaps nothing, and overlap says so.
void complete_data_options(Request& scaled);
/// Throws base::UsageError, with the numbers and the nearest that works, for options that exclude
/// each other and for a partition that has too little to deal.
void require_data(const Request& scaled);
/// Of a twin: blocks of compression as small as its tensors, all of which is sent, so that the
/// result is one rank's.
void shrink_data_options(Request& twin);
/// Of the one rank that a twin is compared with: none of what only replicas do.
void forget_data_options(Request& one);

}  // namespace isoscale::workloads::stack
