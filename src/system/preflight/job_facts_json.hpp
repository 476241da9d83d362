// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "system/preflight/job_facts.hpp"

namespace isoscale::system {

/// Facts as JSON: fields by name, absent ones left out, and those that have their default.
[[nodiscard]] std::string to_json(const JobFacts& facts);
/// Unknown fields are refused, so that a recorded set cannot misspell one. Throws base::Error with
/// what is wrong.
[[nodiscard]] JobFacts job_facts_from_json(std::string_view json);

}  // namespace isoscale::system
