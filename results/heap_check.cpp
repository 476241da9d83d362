// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/heap_check.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "results/files.hpp"

namespace isoscale::results {
namespace {

/// Signature, version 1, three reserved zeros: no text of ours and hardly any data look like it.
constexpr std::string_view collection_mark{"GCOL\x01\0\0\0", 8};
constexpr std::uint64_t header_bytes = 16;  ///< of a collection and of each object in it

/// What is at this place of the file, as far as the file goes.
std::string_view read_at(const Descriptor& file, std::uint64_t at, char* into, std::size_t room) {
  const ssize_t got = pread(file.get(), into, room, static_cast<off_t>(at));
  return {into, got > 0 ? static_cast<std::size_t>(got) : 0};
}

/// The header at `at`, a size in its second half; false when the file ends before.
struct Header {
  std::uint16_t index = 0;  ///< of an object
  std::uint64_t bytes = 0;
};
bool read_header(const Descriptor& file, std::uint64_t at, Header& header) {
  std::array<char, header_bytes> raw{};
  if (read_at(file, at, raw.data(), raw.size()).size() != raw.size()) return false;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(raw[i]); };
  header.index = static_cast<std::uint16_t>(byte(0) | byte(1) << 8U);
  header.bytes = 0;
  for (std::size_t i = header_bytes; i-- > 8;) header.bytes = header.bytes << 8U | byte(i);
  return true;
}

bool collection_is_whole(const Descriptor& file, std::uint64_t begin, std::uint64_t file_size) {
  Header collection;
  if (!read_header(file, begin, collection)) return false;
  const std::uint64_t size = collection.bytes;
  if (size < header_bytes || size > file_size - begin) return false;
  std::uint64_t at = header_bytes;
  while (size - at >= header_bytes) {
    Header object;
    if (!read_header(file, begin + at, object) || object.bytes > size) return false;
    // Object 0 is the free space up to the end, and counts its header.
    const std::uint64_t taken =
        object.index == 0 ? object.bytes : header_bytes + (object.bytes + 7) / 8 * 8;
    if (taken < header_bytes || taken > size - at) return false;
    if (object.index == 0 && taken != size - at) return false;
    at += taken;
  }
  return true;
}

}  // namespace

bool heaps_are_whole(const std::filesystem::path& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return true;
  const std::uint64_t file_size = size_of(file);
  std::string room(std::size_t{1} << 16, '\0');
  for (std::uint64_t begin = 0; begin < file_size;) {
    const std::string_view block = read_at(file, begin, room.data(), room.size());
    for (std::size_t at = block.find(collection_mark); at != std::string_view::npos;
         at = block.find(collection_mark, at + 1)) {
      if (!collection_is_whole(file, begin + at, file_size)) return false;
    }
    if (block.size() < collection_mark.size()) return true;
    // A mark may lie across two blocks.
    begin += block.size() - (collection_mark.size() - 1);
  }
  return true;
}

}  // namespace isoscale::results
