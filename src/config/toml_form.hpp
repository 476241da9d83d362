// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>

#include "config/run_config.hpp"
#include "workloads/workload.hpp"

namespace isoscale::config {

/// from_toml() of run_config.hpp, with a table of workloads of the caller's.
[[nodiscard]] RunConfig from_toml(std::string_view toml, std::string_view origin,
                                  std::span<const workloads::Workload> known);

}  // namespace isoscale::config
