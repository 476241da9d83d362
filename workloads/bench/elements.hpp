// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include "program/buffer.hpp"
#include "workloads/workload.hpp"

namespace isoscale::workloads {

/// The type that a precision stores its data in; fp8 stores e4m3.
[[nodiscard]] program::DType stored_type(Precision precision);
/// The precision that an executor must know to have `type`; absent for integers, which all have.
[[nodiscard]] std::optional<Precision> precision_of(program::DType type);
/// The types of a list such as "f32,i32"; "" = what the request's precision stores.
[[nodiscard]] std::vector<program::DType> element_types(const Request& request,
                                                        std::string_view list);

}  // namespace isoscale::workloads
