// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/hdf5/file_digest.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <vector>

namespace isoscale::results {
namespace {

std::string block_of(const Descriptor& file) {
  std::vector<char> room(std::size_t{1} << 18);  // bytes; fits in a core's cache
  base::Blake2b digest;
  std::uint64_t at = digest_block_bytes;
  for (auto bytes = read_at(file, at, room); !bytes.empty(); bytes = read_at(file, at, room)) {
    digest.add(bytes);
    at += bytes.size();
  }
  return digest_text(digest_mark, digest, at - digest_block_bytes, digest_block_bytes);
}

}  // namespace

std::string digest_text(std::string_view mark, base::Blake2b& digest, std::uint64_t length,
                        std::size_t size) {
  std::string text =
      fmt::format("{}digest blake2b-256 {}\nbytes {}\n", mark, digest.finish(), length);
  text.resize(size - 1, ' ');
  return text + '\n';
}

bool has_digest(const Descriptor& file) {
  std::vector<char> begin(hdf5_signature.size());
  return read_at(file, 0, begin) != hdf5_signature;
}

DigestState digest_state(const std::filesystem::path& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file || !has_digest(file)) return DigestState::none;
  std::vector<char> begin(digest_block_bytes);
  const std::string_view found = read_at(file, 0, begin);
  // Any difference from the expected block means that the digest is wrong, so the block need not be
  // parsed.
  return found == block_of(file) ? DigestState::right : DigestState::wrong;
}

void put_digest(const Descriptor& file) {
  write_at(file, 0, block_of(file), "write the digest of");
}

}  // namespace isoscale::results
