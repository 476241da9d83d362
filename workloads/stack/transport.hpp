// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <vector>

#include "program/program.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads::stack {

/// Writes a program whose buffers of these numbers, sorted, lie in symmetric memory.
using ProgramWriter =
    std::function<program::RankProgram(const std::vector<program::BufferId>& symmetric)>;

/// The program that `write` gives, with what option `transport` asks for: under
/// transport=symmetric the collectives over tp that have a symmetric kernel, and the messages over
/// tp and between stages, travel by Transport::symmetric, and every buffer that they touch lies in
/// Space::symmetric. The ops are the same, and so is what is sent.
[[nodiscard]] program::RankProgram with_transport(const Request& request,
                                                  const ProgramWriter& write);

}  // namespace isoscale::workloads::stack
