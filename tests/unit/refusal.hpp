// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace isoscale::testing_support {

/// Returns what the error says that `call` throws, "" when it throws none.
template <class Error = base::UsageError, class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// The same, and fails the test when nothing is thrown.
template <class Error = base::UsageError, class Call>
std::string usage_error(const Call& call) {
  std::string said = refusal<Error>(call);
  if (said.empty()) ADD_FAILURE() << "nothing was refused";
  return said;
}

}  // namespace isoscale::testing_support
