// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <optional>
#include <string>
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

/// Calls a function of the library that fills a text; nullopt when it is missing or fails.
template <class Function, class... Arguments>
[[nodiscard]] std::optional<std::string> ask_text(Function* function, Arguments... arguments) {
  constexpr std::size_t longest = 96;  // of all texts that NVML gives
  std::array<char, longest> text{};
  if (function == nullptr ||
      function(arguments..., text.data(), static_cast<unsigned>(text.size())) != nvml::success) {
    return std::nullopt;
  }
  text.back() = '\0';
  return std::string{text.data()};
}

/// Hz
[[nodiscard]] inline std::optional<double> ask_clock(int (*function)(Device, int, unsigned*),
                                                     Device device, int clock) {
  constexpr double megahertz = 1e6;
  const std::optional<unsigned> value = ask<unsigned>(function, device, clock);
  return value ? std::optional{*value * megahertz} : std::nullopt;
}

/// The GPU or MIG instance with this UUID; nullopt where NVML does not know it.
[[nodiscard]] std::optional<Device> find_device(const Functions& nvml, std::string_view uuid);

}  // namespace isoscale::system::nvml
