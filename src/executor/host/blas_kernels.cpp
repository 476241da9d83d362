// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "executor/host/blas.hpp"

namespace isoscale::executor::host {

std::string kernel_warning(std::string_view core, Vectors vectors) {
  // Kernels for x86 without AVX2, as OpenBLAS names them.
  static constexpr std::array<std::string_view, 14> old{
      "Prescott", "Core2",  "Penryn",    "Dunnington", "Nehalem",   "Sandybridge", "Atom",
      "Opteron",  "Athlon", "Barcelona", "Bobcat",     "Bulldozer", "Piledriver",  "Steamroller"};
  if (vectors == Vectors::unknown || std::ranges::find(old, core) == old.end()) return {};
  return fmt::format(
      "OpenBLAS does not know this CPU and multiplies with its {} kernels, several times slower "
      "than "
      "the CPU can: set OPENBLAS_CORETYPE={}, or use a newer OpenBLAS",
      core, vectors == Vectors::avx512 ? "SkylakeX" : "Haswell");
}

}  // namespace isoscale::executor::host
