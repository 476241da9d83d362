// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>

#include "comm/blocks.hpp"
#include "comm/calling.hpp"
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

/// Of a text among others: whose it is, how long, and the text itself.
struct RecordHead {
  std::int64_t rank = 0;
  std::uint64_t bytes = 0;
};

std::vector<std::byte> record_of(int rank, std::string_view text) {
  const RecordHead head{.rank = rank, .bytes = text.size()};
  std::vector<std::byte> record(sizeof head + text.size());
  std::memcpy(record.data(), &head, sizeof head);
  if (!text.empty()) std::memcpy(record.data() + sizeof head, text.data(), text.size());
  return record;
}

/// The texts of all ranks, by rank.
std::vector<std::string> texts_of(std::span<const std::byte> records, int ranks) {
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  while (!records.empty()) {
    RecordHead head;
    std::memcpy(&head, records.data(), sizeof head);
    std::string& text = texts.at(static_cast<std::size_t>(head.rank));
    text.resize(head.bytes);
    std::ranges::copy(records.subspan(sizeof head, head.bytes),
                      std::as_writable_bytes(std::span{text}).begin());
    records = records.subspan(sizeof head + head.bytes);
  }
  return texts;
}

void send_all(MPI_Comm communicator, std::span<const std::byte> data, int to) {
  const std::uint64_t size = data.size();
  check(MPI_Send(&size, 1, MPI_UINT64_T, to, gather_tag, communicator));
  send(communicator, data, to);
}

std::vector<std::byte> receive_all(MPI_Comm communicator, int from) {
  std::uint64_t size = 0;
  check(MPI_Recv(&size, 1, MPI_UINT64_T, from, gather_tag, communicator, MPI_STATUS_IGNORE));
  std::vector<std::byte> data(size);
  receive(communicator, data, from);
  return data;
}

}  // namespace

std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> part,
                                                         int root) const {
  const Calling calling{calls_.get()};
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
  const Calling calling{calls_.get()};
  // A binomial tree: in round k, what is at a distance of 2^k from the root, counted in ranks,
  // hands on all that it holds.
  const int place = (rank_ - root + size_) % size_;
  std::vector<std::byte> held = record_of(rank_, text);
  for (int distance = 1; distance < size_; distance *= 2) {
    if (place % (2 * distance) != 0) {
      send_all(get(), held, (rank_ - distance + size_) % size_);
      return {};
    }
    if (place + distance >= size_) continue;
    const std::vector<std::byte> more = receive_all(get(), (rank_ + distance) % size_);
    held.insert(held.end(), more.begin(), more.end());
  }
  return texts_of(held, size_);
}

}  // namespace isoscale::comm
