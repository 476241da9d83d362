// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "results/run_files.hpp"

namespace isoscale::results {

// A run file begins with a block of text before HDF5: the length and the digest of all that follows
// it. HDF5 calls that a user block and passes over it.
//
// The digest finds out damage and changes by other programs. It is no signature: whoever writes
// files on purpose can write it too.

inline constexpr std::size_t digest_block_bytes = 512;  ///< the smallest that HDF5 looks behind
/// The block begins with this; its other lines are `digest blake2b-256 HEX` and `bytes NUMBER`.
inline constexpr std::string_view digest_mark = "isoscale file, digest version 1\n";

enum class DigestState : std::uint8_t {
  right,
  wrong,  ///< not as it was written
  none,   ///< written before there were digests, or by another program
};

/// True if a file begins as ours with a digest do, or as much of it as there is from 8 bytes on.
[[nodiscard]] bool has_digest_mark(const std::filesystem::path& path);

/// True if the file has a digest, right or wrong.
[[nodiscard]] bool has_digest(const Descriptor& file);
/// Reads the whole file unless it has no digest. Throws base::Error when it cannot be read.
[[nodiscard]] DigestState digest_state(const Descriptor& file);
/// The same of the file that has the name; none when it cannot be opened.
[[nodiscard]] DigestState digest_state(const std::filesystem::path& path);

/// Writes the block of a file that has room for it, over what stands there. Throws base::Error.
void put_digest(const Descriptor& file);

}  // namespace isoscale::results
