// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "base/blake2b.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace isoscale::base {
namespace {

/// In pieces of `piece` bytes.
std::string digest_of(std::string_view bytes, std::size_t piece) {
  Blake2b digest;
  for (std::size_t at = 0; at < bytes.size(); at += piece) digest.add(bytes.substr(at, piece));
  return digest.finish();
}

std::string made(std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7 + 3);
  return bytes;
}

TEST(Blake2b, GivesWhatOthersGive) {
  EXPECT_EQ(digest_of("", 1), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(digest_of("abc", 3),
            "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

/// Python's hashlib.blake2b(..., digest_size=32), around the ends of blocks.
TEST(Blake2b, TakesBytesInPiecesOfAnySize) {
  struct Case {
    std::size_t bytes;
    const char* digest;
  };
  for (const Case& expected :
       {Case{1, "e88bd757ad5b9bedf372d8d3f0cf6c962a469db61a265f6418e1ffed86da29ec"},
        Case{127, "c9ae3859964b35f04c54b36d33cf299d7290ee621005d28e51598a943560aaaa"},
        Case{128, "f0501d06597880592bc49234eef100ec1ff349058d0e9d9b753504e24af86dd6"},
        Case{129, "a34a4e1e03c541dfbf3099c4b6c143c022ced65c28bd7e8a10e0a098461aecf0"},
        Case{255, "f2d64a40e9412a3414161ff6250075225418fd7c271c1123e162e1bca0de9f93"},
        Case{256, "d93ebb9c802f5630ab22516fd82b6c21bc8bd551d531349b715f046ed11ed871"},
        Case{257, "4ce481b24d387422d2bc2baa03d1afd55a1327939ff537c71eb9b38709268649"},
        Case{1000003, "26eac2928cd76a2d1c4560d812b2127f037c431611d5556a761e5f8445ad10e4"}}) {
    const std::string bytes = made(expected.bytes);
    for (const std::size_t piece : {1U, 64U, 127U, 128U, 129U, 4096U}) {
      EXPECT_EQ(digest_of(bytes, piece), expected.digest) << expected.bytes << ' ' << piece;
    }
  }
}

}  // namespace
}  // namespace isoscale::base
