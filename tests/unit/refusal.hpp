// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "base/error.hpp"
#include "matchers.hpp"

namespace isoscale::testing_support {

/// Returns what the error says that `call(given...)` throws, "" when it throws none.
template <class Error = base::UsageError, class Call, class... Given>
std::string refusal(const Call& call, const Given&... given) {
  try {
    static_cast<void>(call(given...));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The same, and fails the test when nothing is thrown.
template <class Error = base::UsageError, class Call, class... Given>
std::string usage_error(const Call& call, const Given&... given) {
  std::string said = refusal<Error>(call, given...);
  if (said.empty()) ADD_FAILURE() << "nothing was refused";
  return said;
}

}  // namespace isoscale::testing_support
