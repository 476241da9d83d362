// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <exception>
#include <string>

namespace isoscale::runner {

/// What went wrong, as a sentence. Where memory ran out, which an exception says nothing about, how
/// much this process holds and how much is free.
[[nodiscard]] std::string problem_of(const std::exception& error);

/// Calls `work`; what it throws as a sentence, "" when all is well.
template <class Work>
[[nodiscard]] std::string problem_in(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return problem_of(error);
  }
  return "";
}

}  // namespace isoscale::runner
