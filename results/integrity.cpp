// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "results/integrity.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/blake2b.hpp"
#include "base/error.hpp"
#include "results/run_files.hpp"

namespace isoscale::results {

namespace {

[[noreturn]] void fail(std::string_view what, const Descriptor& file, int code) {
  throw base::Error(
      fmt::format("cannot {} {}: {}", what, name_of(file), std::generic_category().message(code)));
}

/// Reads the file from `at` on, at most the size of `room`; empty at the end of the file.
std::string_view read_at(const Descriptor& file, std::uint64_t at, std::vector<char>& room) {
  while (true) {
    const ssize_t got = pread(file.get(), room.data(), room.size(), static_cast<off_t>(at));
    if (got >= 0) return {room.data(), static_cast<std::size_t>(got)};
    if (errno != EINTR) fail("read", file, errno);
  }
}

/// Returns the digest block for the content of a file.
std::string block_of(const Descriptor& file) {
  std::vector<char> room(std::size_t{1} << 18);  // fits in a core's cache
  base::Blake2b digest;
  std::uint64_t at = digest_block_bytes;
  for (auto bytes = read_at(file, at, room); !bytes.empty(); bytes = read_at(file, at, room)) {
    digest.add(bytes);
    at += bytes.size();
  }
  std::string block = fmt::format("{}digest blake2b-256 {}\nbytes {}\n", digest_mark,
                                  digest.finish(), at - digest_block_bytes);
  block.resize(digest_block_bytes - 1, ' ');
  return block + '\n';
}

}  // namespace

bool has_digest_mark(const std::filesystem::path& path) {
  constexpr std::size_t fewest = 8;
  std::array<char, digest_mark.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), begin.size());
  const std::string_view found{begin.data(), static_cast<std::size_t>(file.gcount())};
  return found.size() >= fewest && digest_mark.starts_with(found);
}

bool has_digest(const Descriptor& file) {
  std::vector<char> begin(digest_mark.size());
  return read_at(file, 0, begin) == digest_mark;
}

DigestState digest_state(const Descriptor& file) {
  if (!has_digest(file)) return DigestState::none;
  std::vector<char> begin(digest_block_bytes);
  const std::string_view found = read_at(file, 0, begin);
  // Any difference from the expected block means that it is wrong, so the block need not be parsed.
  return found == block_of(file) ? DigestState::right : DigestState::wrong;
}

DigestState digest_state(const std::filesystem::path& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  return file ? digest_state(file) : DigestState::none;
}

void put_digest(const Descriptor& file) {
  const std::string block = block_of(file);
  for (std::size_t done = 0; done < block.size();) {
    const ssize_t put =
        pwrite(file.get(), block.data() + done, block.size() - done, static_cast<off_t>(done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write the digest of", file, errno);
    done += static_cast<std::size_t>(put);
  }
}

}  // namespace isoscale::results
