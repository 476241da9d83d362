// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/executor.hpp"
#include "program/program.hpp"

namespace isoscale::executor {

/// Whether any op of any rank travels by Transport::symmetric.
[[nodiscard]] bool uses_symmetric(const program::ProgramSet& set);

/// Throws Unsupported with Description::symmetric_problem, if the programs meet it. Throws
/// base::Error when an op that travels by Transport::symmetric uses a buffer that does not lie in
/// Space::symmetric.
void require_transports(const program::ProgramSet& set, const Description& device);

}  // namespace isoscale::executor
