// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fault/failing_calls.hpp"

/// Work done again and again, with another of its calls failing each time.
namespace isoscale::fault {

struct Work {
  /// Done before anything fails, in the process that the work is done in.
  std::function<void()> prepare;
  /// What calls are counted of, and fail.
  std::function<void()> act;
  /// What is wrong with what came of it, "" when all is well.
  std::function<std::string()> check;
};

/// The calls to fail, of all that the work makes: of each function `most`, the last always among
/// them, or all where there are no more. ISOSCALE_FAULTS sets another number.
[[nodiscard]] std::vector<Failing> plan(const Work& work, int most);

/// Does the work with that call failing, in a process of its own that may neither crash nor hang.
/// What is wrong with what came of it, "" when all is well.
[[nodiscard]] std::string done_with(const Failing& failing, const Work& work);

[[nodiscard]] std::string to_text(const Failing& failing);

}  // namespace isoscale::fault
