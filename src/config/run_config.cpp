// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/run_config.hpp"

#include <array>

namespace isoscale::config {

std::string_view name(Device device) {
  constexpr std::array<std::string_view, 3> names{"auto", "cuda", "host"};
  return names[static_cast<std::size_t>(device)];
}

std::string_view name(FillIdle fill) { return fill == FillIdle::idle ? "idle" : "replicas"; }

}  // namespace isoscale::config
