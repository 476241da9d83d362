// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "analysis/index/index.hpp"

namespace isoscale::analysis {

/// What a process that read a file says to the one that asked it to: the run, or why there is none.
using IndexAnswer = std::variant<IndexRun, Unreadable>;

/// As bytes (CBOR, RFC 8949) for a process of the same program; no format of files.
[[nodiscard]] std::string to_wire(const IndexAnswer& answer);
/// Throws base::Error where the bytes are not what to_wire() gave.
[[nodiscard]] IndexAnswer from_wire(std::string_view bytes);

}  // namespace isoscale::analysis
