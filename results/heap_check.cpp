// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "results/heap_check.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "results/files.hpp"

namespace isoscale::results {
namespace {

/// Signature, version 1, three reserved zeros: no text of ours and hardly any data look like it.
constexpr std::string_view collection_mark{"GCOL\x01\0\0\0", 8};
constexpr std::uint64_t header_bytes = 16;  ///< of a collection and of each object in it

/// A file seen through a window that moves only when something outside it is asked for: a file has
/// thousands of objects, and a call of the system for each would take longer than all else.
class Window {
 public:
  Window(const Descriptor& file, std::size_t room) : file_(file), room_(room, '\0') {}

  /// What is in the file from `at` on: `wanted` bytes or more, fewer only where the file ends.
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
    while (filled_ < room_.size()) {  // a read may give less than there is
      const ssize_t got = pread(file_.get(), room_.data() + filled_, room_.size() - filled_,
                                static_cast<off_t>(at + filled_));
      if (got <= 0) return;
      filled_ += static_cast<std::size_t>(got);
    }
  }

  const Descriptor& file_;  ///< not owned
  std::string room_;
  std::uint64_t begin_ = 0;  ///< of what is held
  std::size_t filled_ = 0;
};

/// The header at the beginning of `raw`, a size in its second half.
struct Header {
  std::uint16_t index = 0;  ///< of an object
  std::uint64_t bytes = 0;
};
Header header_in(std::string_view raw) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(raw[i]); };
  Header header{.index = static_cast<std::uint16_t>(byte(0) | byte(1) << 8U)};
  for (std::size_t i = header_bytes; i-- > 8;) header.bytes = header.bytes << 8U | byte(i);
  return header;
}

/// Collections are small and mostly lie in what is being searched; only beyond it they are read.
class Collections {
 public:
  explicit Collections(const Descriptor& file)
      : file_size_(size_of(file)), searched_(file, search_room), walked_(file, walk_room) {}

  [[nodiscard]] bool are_whole();

 private:
  static constexpr std::size_t search_room = std::size_t{1} << 16, walk_room = std::size_t{1} << 12;

  /// Absent when the file ends before.
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
    // Object 0 is the free space up to the end, and counts its header.
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
    // A mark may lie across two blocks.
    begin += block.size() - (collection_mark.size() - 1);
  }
  return true;
}

}  // namespace

bool heaps_are_whole(const std::filesystem::path& path) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return true;
  return Collections{file}.are_whole();
}

}  // namespace isoscale::results
