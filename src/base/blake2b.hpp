// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace isoscale::base {

/// The hash BLAKE2b with 32 bytes of result and no key (RFC 7693), computed piece by piece. It is
/// as strong as SHA-256, and some four times as fast where the CPU has no instructions for hashing.
/// `b2sum -l 256` prints the same digits.
class Blake2b {
 public:
  Blake2b();
  void add(std::string_view bytes);
  /// Returns the hash of all bytes that were added, as 64 hexadecimal digits. Call it once, at the
  /// end.
  [[nodiscard]] std::string finish();

 private:
  static constexpr std::size_t block_bytes = 128;
  enum class Block : std::uint8_t { inner, last };
  void compress(const char* block, Block which);

  std::array<std::uint64_t, 8> state_{};
  /// The block that is being filled: its first `filled_` bytes were added and are not compressed
  /// yet. A full block is compressed when more bytes are added; finish() compresses what is left as
  /// the last block.
  std::array<char, block_bytes> waiting_{};
  std::size_t filled_ = 0;
  std::uint64_t added_ = 0;  ///< bytes compressed so far, including a block in compression
};

}  // namespace isoscale::base
