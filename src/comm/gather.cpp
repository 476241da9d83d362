// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>

#include "comm/blocks.hpp"
#include "comm/world.hpp"

namespace isoscale::comm {
namespace {

constexpr int gather_tag = 1;

void send(MPI_Comm communicator, std::span<const std::byte> part, int root) {
  for (const auto block : blocks(part)) {
    // Synchronous: at most one block per rank is under way, so the root's memory stays bounded.
    check(MPI_Ssend(block.data(), static_cast<int>(block.size()), MPI_BYTE, root, gather_tag,
                    communicator));
  }
}

void receive(MPI_Comm communicator, std::span<std::byte> part, int source) {
  for (const auto block : blocks(part)) {
    check(MPI_Recv(block.data(), static_cast<int>(block.size()), MPI_BYTE, source, gather_tag,
                   communicator, MPI_STATUS_IGNORE));
  }
}

}  // namespace

std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> part,
                                                         int root) const {
  const auto mine = static_cast<std::uint64_t>(part.size());
  std::vector<std::uint64_t> sizes(rank_ == root ? static_cast<std::size_t>(size_) : 0);
  check(MPI_Gather(&mine, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, root, get()));
  if (rank_ != root) {
    send(get(), part, root);
    return {};
  }
  std::vector<std::vector<std::byte>> parts;
  parts.reserve(sizes.size());
  for (int source = 0; source < size_; ++source) {
    if (source == root) {
      parts.emplace_back(part.begin(), part.end());
      continue;
    }
    parts.emplace_back(sizes[static_cast<std::size_t>(source)]);
    receive(get(), parts.back(), source);
  }
  return parts;
}

std::vector<std::string> Communicator::gather(std::string_view text, int root) const {
  std::vector<std::string> texts;
  for (const auto& part : gather(std::as_bytes(std::span{text}), root)) {
    std::string& copy = texts.emplace_back(part.size(), '\0');
    std::ranges::copy(part, std::as_writable_bytes(std::span{copy}).begin());
  }
  return texts;
}

}  // namespace isoscale::comm
