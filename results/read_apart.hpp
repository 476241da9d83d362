// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "results/reader.hpp"
#include "results/run_data.hpp"

/// Reading by a process of its own, under limits: for files that nothing vouches for. HDF5 1.10
/// crashes on some damaged files, loops on others, and takes all memory for a third kind.
///
/// What the process has read it writes anew, as any run is written, into a temporary file, and this
/// process reads that: HDF5 here sees only what HDF5 has written, with a digest that is checked,
/// and never the file. A form of our own for the way between the two would be as safe, and one more
/// thing to keep in step with every field.
namespace isoscale::results {

/// As read_run. Where the process crashes or exceeds its limits (of memory 1 GiB and 8 times the
/// size of the files; of CPU time 1 s, and 1 s more for each 8 MiB of them) the file is refused
/// like a damaged one.
[[nodiscard]] RunData read_apart(const std::filesystem::path& path, Depth depth);

/// The attribute `id` of an HDF5 file of this format (layout.hpp), read by a process of its own;
/// none when it cannot be had.
[[nodiscard]] std::optional<std::string> id_apart(const std::filesystem::path& path,
                                                  std::string_view format);

}  // namespace isoscale::results
