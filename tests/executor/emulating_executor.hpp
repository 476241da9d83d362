// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "executor/executor.hpp"

namespace isoscale::executor {

/// Makes an executor for tests that plays programs in f16, bf16, tf32 and fp8, too: the reference
/// for devices that compute in them. An op that computes does so on f32 copies of its operands, by
/// the host executor's own calls, and rounds what it wrote once. Other ops are the host executor's.
/// Streams are folded.
[[nodiscard]] std::unique_ptr<Executor> make_emulating_executor();

}  // namespace isoscale::executor
