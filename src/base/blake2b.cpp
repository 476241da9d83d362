// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/blake2b.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace isoscale::base {
namespace {

constexpr std::size_t result_bytes = 32;

constexpr std::array<std::uint64_t, 8> initial{
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

using Order = std::array<std::uint8_t, 16>;
constexpr std::array<Order, 10> orders{{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                        {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
                                        {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
                                        {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
                                        {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
                                        {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
                                        {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
                                        {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
                                        {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
                                        {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}}};
constexpr std::size_t rounds = 12;  // the last two use the first two of `orders` again

using Words = std::array<std::uint64_t, 16>;

Words words_of(const char* block) {
  static_assert(std::endian::native == std::endian::little, "BLAKE2 has little-endian words");
  Words words{};
  std::memcpy(words.data(), block, sizeof words);
  return words;
}

inline void mix(std::uint64_t& a, std::uint64_t& b, std::uint64_t& c, std::uint64_t& d,
                std::uint64_t x, std::uint64_t y) {
  a += b + x;
  d = std::rotr(d ^ a, 32);
  c += d;
  b = std::rotr(b ^ c, 24);
  a += b + y;
  d = std::rotr(d ^ a, 16);
  c += d;
  b = std::rotr(b ^ c, 63);
}

template <std::size_t Round>
inline void play_round(Words& v, const Words& m) {
  constexpr const Order& at = orders[Round % orders.size()];
  mix(v[0], v[4], v[8], v[12], m[at[0]], m[at[1]]);
  mix(v[1], v[5], v[9], v[13], m[at[2]], m[at[3]]);
  mix(v[2], v[6], v[10], v[14], m[at[4]], m[at[5]]);
  mix(v[3], v[7], v[11], v[15], m[at[6]], m[at[7]]);
  mix(v[0], v[5], v[10], v[15], m[at[8]], m[at[9]]);
  mix(v[1], v[6], v[11], v[12], m[at[10]], m[at[11]]);
  mix(v[2], v[7], v[8], v[13], m[at[12]], m[at[13]]);
  mix(v[3], v[4], v[9], v[14], m[at[14]], m[at[15]]);
}

template <std::size_t... Round>
inline void play_rounds(Words& v, const Words& m, std::index_sequence<Round...> /*all*/) {
  (play_round<Round>(v, m), ...);
}

}  // namespace

Blake2b::Blake2b() : state_(initial) { state_[0] ^= 0x01010000U ^ result_bytes; }

void Blake2b::compress(const char* block, Block which) {
  const Words m = words_of(block);
  Words v{};
  std::copy(state_.begin(), state_.end(), v.begin());
  std::copy(initial.begin(), initial.end(), v.begin() + 8);
  v[12] ^= added_;  // BLAKE2 counts bytes in 128 bits; no file needs the upper half
  if (which == Block::last) v[14] = ~v[14];
  play_rounds(v, m, std::make_index_sequence<rounds>{});
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] ^= v[i] ^ v[i + 8];
}

void Blake2b::add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (filled_ == block_bytes) {
      added_ += block_bytes;
      compress(waiting_.data(), Block::inner);
      filled_ = 0;
    }
    // Compresses whole blocks without copying them, as long as more bytes follow: the last block is
    // left to finish().
    while (filled_ == 0 && bytes.size() > block_bytes) {
      added_ += block_bytes;
      compress(bytes.data(), Block::inner);
      bytes.remove_prefix(block_bytes);
    }
    const std::size_t taken = std::min(bytes.size(), block_bytes - filled_);
    std::memcpy(waiting_.data() + filled_, bytes.data(), taken);
    filled_ += taken;
    bytes.remove_prefix(taken);
  }
}

std::string Blake2b::finish() {
  std::fill(waiting_.begin() + static_cast<std::ptrdiff_t>(filled_), waiting_.end(), '\0');
  added_ += filled_;
  compress(waiting_.data(), Block::last);
  std::string text;
  for (std::size_t i = 0; i < result_bytes; ++i) {
    text += fmt::format("{:02x}", state_[i / 8] >> (8 * (i % 8)) & 0xFFU);
  }
  return text;
}

}  // namespace isoscale::base
