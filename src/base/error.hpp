// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <fmt/format.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

namespace isoscale::base {

/// The exit codes of the program. Scripts rely on them, so their values must not change.
enum class ExitCode : int {
  done = 0,
  /// A point (one measured configuration) failed or computed wrong numbers, or an error occurred
  /// that has no code of its own, such as a full disk.
  failed = 1,
  /// Wrong usage, unusable input or a failed preflight check; nothing was measured.
  usage = 2,
  regression = 3,  ///< `compare --gate` found a regression or, with --strict, cannot decide
  hang = 4,        ///< a hang or time-out was detected
};

/// The base class of this program's exceptions. Its message is a sentence for a person (what is
/// wrong, where, what to do); where() is the place in the source that found the error.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message,
                 std::source_location where = std::source_location::current())
      : std::runtime_error(message), where_(where) {}

  [[nodiscard]] const std::source_location& where() const { return where_; }
  [[nodiscard]] virtual ExitCode exit_code() const { return ExitCode::failed; }

 private:
  std::source_location where_;
};

/// The user asked for something that has no meaning or cannot be done: exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
  [[nodiscard]] ExitCode exit_code() const override { return ExitCode::usage; }
};

/// Returns the error for a request that has no meaning or cannot be carried out. `text` says what
/// is wrong and how to correct it.
template <class... Values>
[[nodiscard]] UsageError usage_error(fmt::format_string<Values...> text, Values&&... values) {
  return UsageError{fmt::format(text, std::forward<Values>(values)...)};
}

/// A failure that one rank found and sent to all ranks of the job. Every rank throws this exception
/// and exits in an orderly way; one of them prints the message.
class AgreedError : public Error {
 public:
  using Error::Error;
};

}  // namespace isoscale::base
