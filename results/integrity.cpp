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
#include <optional>
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

/// The signature, version 1 and three reserved zeros; no text written here and hardly any data
/// contains this.
constexpr std::string_view collection_mark{"GCOL\x01\0\0\0", 8};

constexpr std::uint64_t header_bytes = 16;  ///< of a collection, and of each object in it

/// A window on a file that moves only when bytes outside it are needed. A file has thousands of
/// objects, and a system call for each would take longer than everything else.
class Window {
 public:
  Window(const Descriptor& file, std::size_t room) : file_(file), room_(room, '\0') {}

  /// Returns the content of the file from `at` on: at least `wanted` bytes, fewer only at the end
  /// of the file.
  [[nodiscard]] std::string_view from(std::uint64_t at, std::size_t wanted) {
    if (!holds(at, wanted)) fill(at);
    const auto skipped = static_cast<std::size_t>(at - begin_);
    return std::string_view{room_}.substr(skipped, filled_ - skipped);
  }
  [[nodiscard]] bool holds(std::uint64_t at, std::size_t wanted) const {
    return at >= begin_ && at - begin_ <= filled_ && filled_ - (at - begin_) >= wanted;
  }

 private:
  void fill(std::uint64_t at) {
    begin_ = at;
    filled_ = 0;
    while (filled_ < room_.size()) {  // a read may return fewer bytes
      const ssize_t got = pread(file_.get(), room_.data() + filled_, room_.size() - filled_,
                                static_cast<off_t>(at + filled_));
      if (got <= 0) return;
      filled_ += static_cast<std::size_t>(got);
    }
  }

  const Descriptor& file_;  ///< not owned
  std::string room_;
  std::uint64_t begin_ = 0;  ///< offset of the held bytes
  std::size_t filled_ = 0;
};

/// The header at the beginning of `raw`, with a size in its second half.
struct Header {
  std::uint16_t index = 0;  ///< of objects only
  std::uint64_t bytes = 0;
};

Header header_in(std::string_view raw) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(raw[i]); };
  Header header{.index = static_cast<std::uint16_t>(byte(0) | byte(1) << 8U)};
  for (std::size_t i = header_bytes; i-- > 8;) header.bytes = header.bytes << 8U | byte(i);
  return header;
}

/// Checks global heap collections. They are small and mostly inside the window that is being
/// searched; only those beyond it need further reads.
class Collections {
 public:
  explicit Collections(const Descriptor& file)
      : file_size_(size_of(file)), searched_(file, search_room), walked_(file, walk_room) {}

  [[nodiscard]] bool are_whole();

 private:
  static constexpr std::size_t search_room = std::size_t{1} << 16, walk_room = std::size_t{1} << 12;

  /// Returns the header; absent when the file ends before it does.
  [[nodiscard]] std::optional<Header> header_at(std::uint64_t at) {
    Window& window = searched_.holds(at, header_bytes) ? searched_ : walked_;
    const std::string_view raw = window.from(at, header_bytes);
    return raw.size() < header_bytes ? std::nullopt : std::optional{header_in(raw)};
  }
  [[nodiscard]] bool is_whole(std::uint64_t begin);

  std::uint64_t file_size_;
  Window searched_, walked_;
};

bool Collections::is_whole(std::uint64_t begin) {
  const std::optional<Header> collection = header_at(begin);
  if (!collection) return false;
  const std::uint64_t size = collection->bytes;
  if (size < header_bytes || size > file_size_ - begin) return false;
  std::uint64_t at = header_bytes;
  while (size - at >= header_bytes) {
    const std::optional<Header> object = header_at(begin + at);
    if (!object || object->bytes > size) return false;
    // Object 0 is the free space up to the end of the collection; its size includes its header.
    const std::uint64_t taken =
        object->index == 0 ? object->bytes : header_bytes + (object->bytes + 7) / 8 * 8;
    if (taken < header_bytes || taken > size - at) return false;
    if (object->index == 0 && taken != size - at) return false;
    at += taken;
  }
  return true;
}

bool Collections::are_whole() {
  for (std::uint64_t begin = 0; begin < file_size_;) {
    const std::string_view block = searched_.from(begin, search_room);
    for (std::size_t at = block.find(collection_mark); at != std::string_view::npos;
         at = block.find(collection_mark, at + 1)) {
      if (!is_whole(begin + at)) return false;
    }
    if (block.size() < collection_mark.size()) return true;
    // A mark may extend over two blocks.
    begin += block.size() - (collection_mark.size() - 1);
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

bool heaps_are_whole(const std::filesystem::path& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return true;
  return Collections{file}.are_whole();
}

}  // namespace isoscale::results
