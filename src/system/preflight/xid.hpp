// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string_view>

namespace isoscale::system {

/// Whose fault an error usually is, and so whether the GPU can be measured on.
enum class XidOrigin { program, hardware, either };

struct Xid {
  int code = 0;
  XidOrigin origin = XidOrigin::either;
  std::string_view meaning, action;
};

/// Out of NVIDIA's documentation "Xid Errors" (docs.nvidia.com/deploy/xid-errors); nullopt for
/// codes that are not among the well known.
[[nodiscard]] std::optional<Xid> find_xid(int code);

}  // namespace isoscale::system
