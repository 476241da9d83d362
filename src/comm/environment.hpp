// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <source_location>
#include <string>

#include "base/error.hpp"
#include "units/quantity.hpp"

/// The MPI environment of this process: it starts and ends MPI, turns its error codes into
/// exceptions, and holds the clock of all times.
namespace isoscale::comm {

class MpiError : public base::Error {
 public:
  using Error::Error;
};

/// Throws MpiError with MPI's own text when `code` is not MPI_SUCCESS. Every MPI call goes through
/// it.
void check(int code, std::source_location where = std::source_location::current());
/// Writes to standard error what check() would throw: for destructors and the like, where no caller
/// can catch it.
void warn_unless_ok(int code,
                    std::source_location where = std::source_location::current()) noexcept;

/// Lasts from MPI_Init_thread (MPI_THREAD_MULTIPLE) to MPI_Finalize. It is made once, at the start
/// of main, so that it is destroyed last. When an exception in flight destroys it, it does not
/// finalize: peers may be in a collective.
class Environment {
 public:
  Environment(int* argc, char*** argv);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Returns the highest thread level that the library gave; below MULTIPLE only one stream can be
  /// played.
  [[nodiscard]] int thread_level() const { return thread_level_; }
  /// Ends every process of the job: for a rank that has failed while its peers wait for it.
  [[noreturn]] static void abort_job(int exit_code) noexcept;
  [[nodiscard]] static std::string library_version();  ///< first line, "Open MPI v4.1.4, ..."

 private:
  int thread_level_ = 0;
};

/// Returns the current time of the steady clock that all our times are taken from.
[[nodiscard]] units::Nanoseconds now();

}  // namespace isoscale::comm
