// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "workloads/workload.hpp"

/// Inference: prompts that fill a cache of keys and values, then tokens one by one that read it.
/// tp splits each token's work, dp adds replicas, pp splits the layers.
namespace isoscale::workloads::infer {

/// One row a batch size and part: "prefill", whose time is that to the first token, and "decode",
/// whose time is one output token's. Each batch size has a session of its own.
[[nodiscard]] BenchHooks hooks();

/// For verification: a prefill of the last batch size and the decode that follows it, in one step.
[[nodiscard]] program::ProgramSet build(const Request& request);

}  // namespace isoscale::workloads::infer
