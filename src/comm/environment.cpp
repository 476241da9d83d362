// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>

#include "comm/check.hpp"
#include "comm/world.hpp"

namespace isoscale::comm {
namespace {

/// With one space for each white space: MPICH has tabs between columns.
std::string first_line(std::string_view text) {
  std::istringstream words{std::string{text.substr(0, text.find('\n'))}};
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace

Environment::Environment(int* argc, char*** argv) {
  check(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &thread_level_));
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

Environment::~Environment() {
  if (std::uncaught_exceptions() == 0) warn_unless_ok(MPI_Finalize());
}

void Environment::abort_job(int exit_code) noexcept {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);  // MPI_Abort returned: it had nobody to tell
}

void Environment::leave(int exit_code) noexcept {
  std::fflush(nullptr);
  std::_Exit(exit_code);
}

std::string Environment::library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check(MPI_Get_library_version(text.data(), &length));
  // Up to the end of the text, which Open MPI's length counts too: a file does not keep that.
  return first_line(text.data());
}

units::Nanoseconds now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return units::Nanoseconds{std::chrono::nanoseconds{since}.count()};
}

}  // namespace isoscale::comm
