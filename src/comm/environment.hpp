// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <source_location>
#include <string>

#include "base/error.hpp"
#include "units/quantity.hpp"

/// Starts and ends MPI in this process, turns its error codes into exceptions, and provides the
/// clock for all measured times.
namespace isoscale::comm {

class MpiError : public base::Error {
 public:
  using Error::Error;
};

/// Throws MpiError with MPI's own message unless `code` is MPI_SUCCESS. The return code of every
/// MPI call is passed to this function.
void check(int code, std::source_location where = std::source_location::current());
/// Writes the message that check() would throw to standard error. It is for destructors and other
/// code whose caller cannot catch an exception.
void warn_unless_ok(int code,
                    std::source_location where = std::source_location::current()) noexcept;

/// Calls MPI_Init_thread (with MPI_THREAD_MULTIPLE) when constructed and MPI_Finalize when
/// destroyed. It is made once, at the start of main, so that it is destroyed last. If an exception
/// in flight destroys it, it does not finalize MPI, since peers may be in a collective.
class Environment {
 public:
  Environment(int* argc, char*** argv);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Returns the thread level that MPI granted; below MPI_THREAD_MULTIPLE the host executor runs
  /// all streams on one thread.
  [[nodiscard]] int thread_level() const { return thread_level_; }
  /// Ends every process of the job. A rank that has failed while its peers wait for it calls this.
  [[noreturn]] static void abort_job(int exit_code) noexcept;
  [[nodiscard]] static std::string library_version();  ///< first line, "Open MPI v4.1.4, ..."

 private:
  int thread_level_ = 0;
};

/// Returns the current time of the steady clock, which is the source of all measured times.
[[nodiscard]] units::Nanoseconds now();

}  // namespace isoscale::comm
