// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace isoscale::fault {

/// What this process has open: handles of HDF5 by kind, file descriptors. Equal texts, nothing
/// leaked.
[[nodiscard]] std::string open_handles();

}  // namespace isoscale::fault
