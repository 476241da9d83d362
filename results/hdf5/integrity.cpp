// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "results/hdf5/integrity.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "base/blake2b.hpp"

namespace isoscale::results {

namespace {

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

/// The signature, version 1 and three reserved zeros of a global heap collection (HDF5 File Format
/// Specification 2.0, III.E); no text written here and hardly any data contains this.
constexpr std::string_view collection_mark{"GCOL\x01\0\0\0", 8};

constexpr std::uint64_t header_bytes = 16;  ///< of a collection, and of each object in it

/// Returns the size in the second half of a header.
std::uint64_t size_in(std::string_view header) {
  std::uint64_t size = 0;
  for (std::size_t i = header_bytes; i-- > 8;)
    size = size << 8U | static_cast<unsigned char>(header[i]);
  return size;
}

/// True if a file has a whole collection at `begin`: objects in sequence up to its end.
bool is_whole_collection(const Descriptor& file, std::uint64_t begin, std::vector<char>& room) {
  room.resize(header_bytes);
  const std::string_view header = read_at(file, begin, room);
  if (header.size() < header_bytes) return false;
  const std::uint64_t size = size_in(header);
  if (size < header_bytes || size > size_of(file) - begin) return false;
  room.resize(size);
  std::string_view rest = read_at(file, begin, room);
  if (rest.size() < size) return false;
  rest.remove_prefix(header_bytes);
  while (rest.size() >= header_bytes) {
    const std::uint64_t bytes = size_in(rest);
    const bool is_free =
        rest[0] == '\0' && rest[1] == '\0';  // object 0 is free space up to the end
    if (bytes > size || (is_free && bytes != rest.size())) return false;
    const std::uint64_t taken = is_free ? bytes : header_bytes + (bytes + 7) / 8 * 8;
    if (taken > rest.size()) return false;
    rest.remove_prefix(taken);
  }
  return true;
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
  // Any difference from the expected block means that the digest is wrong, so the block need not be
  // parsed.
  return found == block_of(file) ? DigestState::right : DigestState::wrong;
}

DigestState digest_state(const std::filesystem::path& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  return file ? digest_state(file) : DigestState::none;
}

void put_digest(const Descriptor& file) {
  write_at(file, 0, block_of(file), "write the digest of");
}

bool heaps_are_whole(const std::filesystem::path& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return true;
  std::vector<char> room(std::size_t{1} << 18), collection;
  std::uint64_t begin = 0;
  for (auto block = read_at(file, begin, room); block.size() >= collection_mark.size();
       block = read_at(file, begin, room)) {
    for (std::size_t at = block.find(collection_mark); at != std::string_view::npos;
         at = block.find(collection_mark, at + 1)) {
      if (!is_whole_collection(file, begin + at, collection)) return false;
    }
    begin += block.size() - (collection_mark.size() - 1);  // a mark may extend over two blocks
  }
  return true;
}

}  // namespace isoscale::results
