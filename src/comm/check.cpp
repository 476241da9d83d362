// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>

#include "comm/world.hpp"

namespace isoscale::comm {

void check(int code, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  const std::string_view reason{text.data(), static_cast<std::size_t>(length)};
  throw MpiError(fmt::format("MPI call failed in {}: {} (code {})", where.function_name(),
                             reason.empty() ? "no reason given" : reason, code),
                 where);
}

}  // namespace isoscale::comm
