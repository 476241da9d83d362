// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>

#include "workloads/options.hpp"

namespace isoscale::workloads::tiles {

[[nodiscard]] std::span<const OptionSpec> option_table();

}  // namespace isoscale::workloads::tiles
