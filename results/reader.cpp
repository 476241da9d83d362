// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/reader.hpp"

#include <system_error>

#include "results/hdf5.hpp"
#include "results/read_apart.hpp"
#include "results/read_here.hpp"

namespace isoscale::results {

RunData read_run(const std::filesystem::path& path, Depth depth) {
  try {
    return read_here(path, depth, Accept::digest_right);
  } catch (const DigestNotRight&) {
    return read_apart(path, depth);
  }
}

bool may_be_run_file(const std::filesystem::path& path) {
  std::error_code absent;
  return std::filesystem::is_regular_file(path, absent) && hdf5::File::has_signature(path);
}

}  // namespace isoscale::results
