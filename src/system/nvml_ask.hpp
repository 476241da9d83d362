// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

#include "system/nvml.hpp"

namespace isoscale::system::nvml {

/// Calls a function of the library that fills `result`; nullopt when it is missing or fails.
template <class Result, class Function, class... Arguments>
[[nodiscard]] std::optional<Result> ask(Function* function, Arguments... arguments) {
  Result result{};
  if (function == nullptr || function(arguments..., &result) != nvml::success) return std::nullopt;
  return result;
}

/// The GPU or MIG instance with this UUID; nullopt where NVML does not know it.
[[nodiscard]] std::optional<Device> find_device(const Functions& nvml, std::string_view uuid);

}  // namespace isoscale::system::nvml
