// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/communicator.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <new>
#include <sstream>

#include "base/warn.hpp"
#include "machine/procfs_and_cgroups.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::comm {
namespace {

/// Returns the first line of a text with one space for each run of white space, since MPICH puts
/// tabs between columns.
std::string first_line(std::string_view text) {
  std::istringstream words{std::string{text.substr(0, text.find('\n'))}};
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

std::string sentence(int code, const std::source_location& where) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0, initialized = 0, finalized = 0;
  // Open MPI ends a process that calls MPI_Error_string before MPI_Init or after MPI_Finalize.
  const bool may_ask = MPI_Initialized(&initialized) == MPI_SUCCESS && initialized != 0 &&
                       MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0;
  if (!may_ask || MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  const std::string_view reason{text.data(), static_cast<std::size_t>(length)};
  return fmt::format("MPI call failed in {}: {} (code {})", where.function_name(),
                     reason.empty() ? "no reason given" : reason, code);
}

/// Returns how much memory this process holds, as a part of a sentence; "what it holds" if the
/// system does not report the amount.
std::string held() {
  std::istringstream pages{machine::read_file("/proc/self/statm").value_or("")};
  std::uint64_t whole = 0, resident = 0;
  if (!(pages >> whole >> resident)) return "what it holds";
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return fmt::format("the {} that it holds", units::format(units::Bytes{resident * page}));
}

}  // namespace

Environment::Environment(int* argc, char*** argv) {
  int granted = 0;  // see threads_may_talk()
  check(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &granted));
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

Environment::~Environment() {
  if (std::uncaught_exceptions() == 0) warn_unless_ok(MPI_Finalize());
}

void Environment::abort_job(int exit_code) noexcept {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);  // reached only if MPI_Abort returns
}

std::string Environment::library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length));
  // The text is read up to its terminating zero, not up to `length`, because Open MPI counts the
  // zero in the length and the run file must not contain it.
  return first_line(text.data());
}

bool threads_may_talk() {
  int level = MPI_THREAD_SINGLE;
  check(MPI_Query_thread(&level));
  return level == MPI_THREAD_MULTIPLE;
}

units::Nanoseconds now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return units::Nanoseconds{std::chrono::nanoseconds{since}.count()};
}

void check(int code, std::source_location where) {
  if (code != MPI_SUCCESS) throw MpiError(sentence(code, where), where);
}

void warn_unless_ok(int code, std::source_location where) noexcept {
  if (code == MPI_SUCCESS) return;
  try {
    base::warn("isoscale: warning: " + sentence(code, where));
  } catch (...) {
    // There is no way left to report the failure.
  }
}

std::string problem_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  const auto left = machine::memory_available(machine::read_file);
  return fmt::format(
      "out of memory: this rank needs more than {}; {} free on its node: use a smaller model or "
      "batch, or fewer ranks per node",
      held(), left ? units::format(*left) : "unknown");
}

}  // namespace isoscale::comm
