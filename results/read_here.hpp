// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "results/reader.hpp"
#include "results/run_data.hpp"

/// Reading by this very process, whatever HDF5 makes of the file.
namespace isoscale::results {

/// What is wrong with a file and what to do, as base::UsageError: one sentence, the file first.
[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view problem);

/// Refuses what is no readable file with the signature of HDF5, before HDF5 sees it.
void check_kind(const std::filesystem::path& path);

/// Which files HDF5 may see here.
enum class Accept : std::uint8_t { digest_right, all };

/// Of a run file or one of its parts, where only those whose digest is right are accepted.
struct DigestNotRight {};

/// As read_run, by this process. Of files whose digest is wrong the run's warnings say so. Throws
/// DigestNotRight before HDF5 has seen the file that it is about.
[[nodiscard]] RunData read_here(const std::filesystem::path& path, Depth depth, Accept accept);

/// The run that an HDF5 file of this format (layout.hpp) belongs to; none when it is of another
/// format. Throws base::Error when it cannot be read.
[[nodiscard]] std::optional<std::string> id_here(const std::filesystem::path& path,
                                                 std::string_view format);

}  // namespace isoscale::results
