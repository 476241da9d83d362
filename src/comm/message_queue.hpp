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

struct Message {
  int from = 0;
  std::vector<std::byte> bytes{};
};

/// Queues of small messages between the ranks of a communicator, for receivers that do not know
/// when or in which order messages come. They use a duplicate of the communicator. Messages with
/// the same `tag` (a small number of 0 or more) between two ranks keep their order. If
/// threads_may_talk() is true, several threads of a rank may send and take at once, each with tags
/// of its own.
class MessageQueue {
 public:
  /// Collective: duplicates the communicator.
  explicit MessageQueue(const Communicator& base) : own_(base.duplicate()) {}

  /// Sends a message and waits until MPI has completed the send, for which the receiver must call
  /// take() from time to time. A rank may send to itself. Throws base::Error if the send has not
  /// completed after `patience`; the message may then still be in flight, and abandon() must be
  /// called.
  void send(int to, int tag, std::span<const std::byte> bytes, units::Seconds patience) const;
  /// Sends a message without waiting, for receivers that may no longer run. The object keeps the
  /// message until MPI has completed the send. Only one thread may call post().
  void post(int to, int tag, std::span<const std::byte> bytes);
  /// Returns a message with the tag, if one has arrived; does not wait. The messages of one sender
  /// are returned in their order.
  [[nodiscard]] std::optional<Message> take(int tag) const;
  /// Returns the rank of a member in MPI_COMM_WORLD.
  [[nodiscard]] int world_rank(int member) const { return own_.world_rank(member); }
  /// Drops the communicator without freeing it: peers may still use it.
  void abandon() noexcept;

 private:
  struct Posted {
    std::unique_ptr<std::vector<std::byte>> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  [[nodiscard]] Posted posted(int to, int tag, std::span<const std::byte> bytes) const;
  void forget_taken();

  Communicator own_;
  std::vector<Posted> posted_;  ///< messages whose sends may not have completed
};

}  // namespace isoscale::comm
