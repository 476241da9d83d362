// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <source_location>
#include <string>

#include "base/error.hpp"
#include "units/quantity.hpp"

/// The MPI environment of this process: it starts and ends MPI, turns its error codes into
/// exceptions, and has the clock of all times.
namespace isoscale::comm {

class MpiError : public base::Error {
 public:
  using Error::Error;
};

/// Throws MpiError with MPI's own text when `code` is not MPI_SUCCESS. Every MPI call goes through
/// it.
void check(int code, std::source_location where = std::source_location::current());
/// Says on standard error what check() would throw: where something ends, and nobody is left to
/// catch it.
void warn_unless_ok(int code,
                    std::source_location where = std::source_location::current()) noexcept;

/// MPI_Init_thread (MPI_THREAD_MULTIPLE) to MPI_Finalize; made once, in main, and first destroyed
/// last. When destroyed by an exception in flight it does not finalize: peers may be in a
/// collective.
class Environment {
 public:
  Environment(int* argc, char*** argv);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Highest thread level the library gave; below MULTIPLE only single-stream play is possible.
  [[nodiscard]] int thread_level() const { return thread_level_; }
  /// Ends every process of the job: for a rank that has failed while its peers wait for it.
  [[noreturn]] static void abort_job(int exit_code) noexcept;
  /// Ends this process alone, at once and without MPI's end: where threads are stuck in MPI. All
  /// ranks must do so.
  [[noreturn]] static void leave(int exit_code) noexcept;
  [[nodiscard]] static std::string library_version();  ///< first line, "Open MPI v4.1.4, ..."

 private:
  int thread_level_ = 0;
};

/// Now, on the steady clock that all our times are taken on.
[[nodiscard]] units::Nanoseconds now();

}  // namespace isoscale::comm
