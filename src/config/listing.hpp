// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string>

#include "config/command_line.hpp"
#include "workloads/workload.hpp"

namespace isoscale::config {

/// One key of a file that people write; `fallback` is "needed" where it must be there.
[[nodiscard]] std::string key_text(std::string_view key, std::string_view fallback,
                                   std::string_view meaning);

/// The output of `isoscale list ...`: one line each, ends in a line break. Throws std::logic_error
/// for the keys of data sheets, whose reader is not known here.
[[nodiscard]] std::string listing(const ListCommand& command,
                                  std::span<const workloads::Workload> known);

}  // namespace isoscale::config
