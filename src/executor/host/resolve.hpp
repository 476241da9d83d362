// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "executor/host/calls.hpp"
#include "executor/resolver.hpp"

namespace isoscale::executor::host {

/// From slices to addresses and to what the host computes in.
class Resolver : public executor::Resolver {
 public:
  using executor::Resolver::Resolver;

  /// Throws base::Error unless the host computes in the slice's type; `role` names the operand.
  [[nodiscard]] Element element(const program::Slice& slice, std::string_view role) const;
};

}  // namespace isoscale::executor::host
