// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "program/faults.hpp"

namespace isoscale::program {

/// Whether the library is told of the memory that it communicates from, before it does.
enum class Registration : std::uint8_t { none, local };
[[nodiscard]] std::string_view name(Registration registration);

/// How a session differs from the usual one; an executor that cannot says so.
struct SessionOptions {
  std::string collective_algorithm{};  ///< that the library must use; "" = its own choice
  std::string collective_protocol{};   ///< "" = its own choice
  Registration registration = Registration::none;
  std::optional<int> numa_node{};  ///< where host memory lies; absent: where it comes to lie
  Faults faults{};                 ///< of this rank

  bool operator==(const SessionOptions&) const = default;
};

}  // namespace isoscale::program
