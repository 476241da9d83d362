// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

/// Every fuzz target defines this function, by the name that libFuzzer calls it. It returns 0; it
/// ends the process where the code under test did what it must not do.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  // NOLINT

namespace isoscale::fuzz {

/// Ends the process with a sentence unless what must hold does.
inline void must(bool holds, const char* what) {  // NOLINT: a condition is what it takes
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace isoscale::fuzz
