// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/check.hpp"

#include <fmt/format.h>

#include <array>

#include "base/log.hpp"
#include "comm/world.hpp"

namespace isoscale::comm {

namespace {

std::string sentence(int code, const std::source_location& where) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0, initialized = 0, finalized = 0;
  // Open MPI ends a process that asks before MPI has started or after it has ended.
  const bool may_ask = MPI_Initialized(&initialized) == MPI_SUCCESS && initialized != 0 &&
                       MPI_Finalized(&finalized) == MPI_SUCCESS && finalized == 0;
  if (!may_ask || MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  const std::string_view reason{text.data(), static_cast<std::size_t>(length)};
  return fmt::format("MPI call failed in {}: {} (code {})", where.function_name(),
                     reason.empty() ? "no reason given" : reason, code);
}

}  // namespace

void check(int code, std::source_location where) {
  if (code != MPI_SUCCESS) throw MpiError(sentence(code, where), where);
}

void warn_unless_ok(int code, std::source_location where) noexcept {
  if (code == MPI_SUCCESS) return;
  try {
    base::warn("isoscale: warning: " + sentence(code, where));
  } catch (...) {
    // Nothing is left to report it with.
  }
}

}  // namespace isoscale::comm
