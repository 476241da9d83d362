// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "comm/message_queue.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace isoscale::comm {
namespace {

constexpr std::chrono::microseconds nap{20};  // pause between two tests of a send

}  // namespace

/// Begins to send a copy of the bytes, which MPI may read until the request is complete.
MessageQueue::Posted MessageQueue::posted(int to, int tag, std::span<const std::byte> bytes) const {
  Posted posted{.bytes = std::make_unique<std::vector<std::byte>>(bytes.begin(), bytes.end())};
  check(MPI_Isend(posted.bytes->data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag,
                  own_.get(), &posted.request));
  return posted;
}

void MessageQueue::send(int to, int tag, std::span<const std::byte> bytes,
                        units::Seconds patience) const {
  auto [copy, request] = posted(to, tag, bytes);
  const units::Nanoseconds end = now() + units::to_nanoseconds(patience);
  while (true) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    if (now() > end) {
      static_cast<void>(copy.release());  // MPI may still read it
      throw base::Error(fmt::format("a message to rank {} was not taken", world_rank(to)));
    }
    std::this_thread::sleep_for(nap);
  }
}

void MessageQueue::post(int to, int tag, std::span<const std::byte> bytes) {
  forget_taken();
  posted_.push_back(posted(to, tag, bytes));
}

void MessageQueue::forget_taken() {
  std::erase_if(posted_, [](Posted& posted) {
    int done = 0;
    check(MPI_Test(&posted.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
}

void MessageQueue::abandon() noexcept {
  try {
    forget_taken();
  } catch (const base::Error&) {
    // A message whose MPI_Test fails is kept, as if its send had not completed.
  }
  own_.abandon();
  for (Posted& posted : posted_) static_cast<void>(posted.bytes.release());  // MPI may read them
  posted_.clear();
}

std::optional<Message> MessageQueue::take(int tag) const {
  int is_there = 0;
  MPI_Message matched = MPI_MESSAGE_NULL;
  MPI_Status status{};
  check(MPI_Improbe(MPI_ANY_SOURCE, tag, own_.get(), &is_there, &matched, &status));
  if (is_there == 0) return std::nullopt;
  int bytes = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &bytes));
  Message message{.from = status.MPI_SOURCE,
                  .bytes = std::vector<std::byte>(static_cast<std::size_t>(bytes))};
  check(MPI_Mrecv(message.bytes.data(), bytes, MPI_BYTE, &matched, MPI_STATUS_IGNORE));
  return message;
}

}  // namespace isoscale::comm
