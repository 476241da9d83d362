// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.hpp"

namespace isoscale::comm {

/// True if several threads of a process may call MPI at once (MPI_THREAD_MULTIPLE).
[[nodiscard]] bool threads_may_talk();

struct Message {
  int from = 0;
  std::vector<std::byte> bytes{};
};

/// Queues of small messages between the ranks of a communicator, whose time and order nobody knows
/// beforehand; on a duplicate of that communicator. Messages of one `tag` (a small number of 0 or
/// more) between two ranks keep their order. Where threads_may_talk(), several threads of a rank
/// may send and take at once, each from tags of its own.
class MessageQueue {
 public:
  /// Collective.
  explicit MessageQueue(const Communicator& base) : own_(base.duplicate()) {}

  /// Returns when `bytes` are no longer needed, for which a receiver that looks in now and then is
  /// enough. A rank may send to itself. Throws base::Error when the message has not gone after
  /// `patience`; it is still under way then, and the communicator must be abandoned.
  void send(int to, int tag, std::span<const std::byte> bytes, units::Seconds patience) const;
  /// Sends without ever waiting, for receivers that may be gone: the message is kept until it has
  /// been taken. From one thread.
  void post(int to, int tag, std::span<const std::byte> bytes);
  /// The oldest message with the tag, if there is one; does not wait.
  [[nodiscard]] std::optional<Message> take(int tag) const;
  /// See Communicator.
  [[nodiscard]] int world_rank(int member) const { return own_.world_rank(member); }
  /// Forgets the communicator: peers may still be at it.
  void abandon() noexcept;

 private:
  struct Posted {
    std::unique_ptr<std::vector<std::byte>> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void forget_taken();

  Communicator own_;
  std::vector<Posted> posted_;  ///< perhaps not yet taken
};

}  // namespace isoscale::comm
