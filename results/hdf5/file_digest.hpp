// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/blake2b.hpp"
#include "results/hdf5/publish_and_lock_files.hpp"

namespace isoscale::results {

// A run file begins with a block of text before the HDF5 data (HDF5's user block), with the length
// and the digest of everything after it. The digest detects damage and changes by other programs.
// It is not a signature: a program that forges files can compute it too.

inline constexpr std::size_t digest_block_bytes = 512;  ///< the smallest user block of HDF5
/// The first line of the digest block; the others are `digest blake2b-256 HEX` and `bytes NUMBER`.
inline constexpr std::string_view digest_mark = "isoscale file, digest version 1\n";

/// Returns `size` bytes of text: the mark, the digest of some content, its length, and blanks.
[[nodiscard]] std::string digest_text(std::string_view mark, base::Blake2b& digest,
                                      std::uint64_t length, std::size_t size);

enum class DigestState : std::uint8_t {
  right,
  wrong,  ///< the file differs from what was written
  none,   ///< HDF5 begins at once: an old version wrote the file, or its digest was removed
};

/// The first bytes of a file without a digest.
inline constexpr std::string_view hdf5_signature{"\211HDF\r\n\032\n", 8};

/// True if the file has a digest, right or wrong.
[[nodiscard]] bool has_digest(const Descriptor& file);
/// Returns the state of the digest of the file with this name; DigestState::none if it cannot be
/// opened. Reads the whole file if it has a digest. Throws base::Error when it cannot be read.
[[nodiscard]] DigestState digest_state(const std::filesystem::path& path);

/// Writes the block with the digest to a file that has room for it, in place of any earlier block.
/// Throws base::Error if the file cannot be read or written.
void put_digest(const Descriptor& file);

}  // namespace isoscale::results
