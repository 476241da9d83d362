// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/resolve.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace isoscale::executor::host {

Element Resolver::element(const program::Slice& slice, std::string_view role) const {
  switch (dtype(slice)) {
    case program::DType::f32:
      return Element::f32;
    case program::DType::f64:
      return Element::f64;
    default:
      throw base::Error(fmt::format(
          "{} is {}, but the host computes in f32 and f64 only: ask for --dtype f32 or f64, or "
          "for another device",
          role, program::name(dtype(slice))));
  }
}

}  // namespace isoscale::executor::host
