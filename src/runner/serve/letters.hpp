// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/error.hpp"
#include "comm/message_queue.hpp"
#include "units/quantity.hpp"

/// What dispatcher, leaders of replicas and their followers write to each other.
namespace isoscale::runner::serve {

/// Boxes of Mail: one reader each.
inline constexpr int dispatcher_box = 0, leader_box = 1, follower_box = 2;

enum class Kind : std::int64_t {
  request,  ///< to a leader: request, tokens
  end,      ///< to a leader: nothing more will come; to a follower, too
  answer,   ///< to the dispatcher: all but replica, which is the sender
  failed,   ///< to the dispatcher: the sender has a problem, which it keeps until the vote
  batch     ///< to a follower: size, tokens
};

/// Plain data, alike on all ranks of a build.
struct Letter {
  Kind kind = Kind::end;
  std::uint64_t request = 0;
  std::uint64_t tokens = 0;
  std::uint64_t size = 0;    ///< of a batch order: the index of the size that is played
  std::uint64_t batch = 0;   ///< number of the batch on its replica
  std::uint64_t filled = 0;  ///< requests in it
  units::Nanoseconds started{}, first{}, finished{};  ///< the leader's clock
};
static_assert(std::is_trivially_copyable_v<Letter>);

inline void send(const comm::MessageQueue& mail, int to, int box, const Letter& letter,
                 units::Seconds patience) {
  mail.send(to, box, std::as_bytes(std::span{&letter, 1}), patience);
}

/// Throws base::Error for what is no letter.
[[nodiscard]] inline Letter read(const comm::Message& envelope) {
  Letter letter;
  if (envelope.bytes.size() != sizeof letter) throw base::Error("a letter of the wrong length");
  std::memcpy(&letter, envelope.bytes.data(), sizeof letter);
  return letter;
}

}  // namespace isoscale::runner::serve
