// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/mail.hpp"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

namespace isoscale::comm {
namespace {

constexpr std::chrono::microseconds nap{20};

}  // namespace

bool threads_may_talk() {
  int level = MPI_THREAD_SINGLE;
  check(MPI_Query_thread(&level));
  return level == MPI_THREAD_MULTIPLE;
}

void Mail::send(int to, int box, std::span<const std::byte> letter, units::Seconds patience) const {
  // A copy of its own: should it never go, the caller's must not be read any more.
  auto copy = std::make_unique<std::vector<std::byte>>(letter.begin(), letter.end());
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Isend(copy->data(), static_cast<int>(copy->size()), MPI_BYTE, to, box, own_.get(),
                  &request));
  const units::Nanoseconds end = now() + units::to_nanoseconds(patience);
  while (true) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    if (now() > end) {
      static_cast<void>(copy.release());  // MPI may still read it
      throw base::Error(fmt::format("a letter to rank {} was not taken", world_rank(to)));
    }
    std::this_thread::sleep_for(nap);
  }
}

void Mail::post(int to, int box, std::span<const std::byte> letter) {
  forget_taken();
  Posted& posted = posted_.emplace_back();
  posted.letter = std::make_unique<std::vector<std::byte>>(letter.begin(), letter.end());
  check(MPI_Isend(posted.letter->data(), static_cast<int>(posted.letter->size()), MPI_BYTE, to, box,
                  own_.get(), &posted.request));
}

void Mail::forget_taken() {
  std::erase_if(posted_, [](Posted& posted) {
    int done = 0;
    check(MPI_Test(&posted.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
}

void Mail::abandon() noexcept {
  try {
    forget_taken();
  } catch (const base::Error&) {
    // As good as not taken.
  }
  own_.abandon();
  for (Posted& posted : posted_) static_cast<void>(posted.letter.release());  // MPI may read them
  posted_.clear();
}

std::optional<Envelope> Mail::take(int box) const {
  int is_there = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status{};
  check(MPI_Improbe(MPI_ANY_SOURCE, box, own_.get(), &is_there, &message, &status));
  if (is_there == 0) return std::nullopt;
  int bytes = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &bytes));
  Envelope envelope{.from = status.MPI_SOURCE,
                    .letter = std::vector<std::byte>(static_cast<std::size_t>(bytes))};
  check(MPI_Mrecv(envelope.letter.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
  return envelope;
}

}  // namespace isoscale::comm
