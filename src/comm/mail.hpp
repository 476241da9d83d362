// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/world.hpp"

/// Small messages whose time and order nobody knows beforehand.
namespace isoscale::comm {

/// Whether several threads of a process may talk at once (MPI_THREAD_MULTIPLE).
[[nodiscard]] bool threads_may_talk();

struct Envelope {
  int from = 0;
  std::vector<std::byte> letter{};
};

/// Letters between the ranks of a communicator, on one of its own. Letters of one `box` (a small
/// number of 0 or more) between two ranks keep their order. Where threads_may_talk(), several
/// threads of a rank may send and take at once, each from boxes of its own.
class Mail {
 public:
  /// Collective.
  explicit Mail(const Communicator& base) : own_(base.duplicate()) {}

  /// Returns when the letter may be forgotten, which a receiver that looks in now and then is
  /// enough for. A rank may write to itself. Throws base::Error when the letter has not gone after
  /// `patience`; it is still under way then, and the communicator must be abandoned.
  void send(int to, int box, std::span<const std::byte> letter, units::Seconds patience) const;
  /// Sends without ever waiting, for receivers that may be gone: the letter is kept until it has
  /// been taken. From one thread.
  void post(int to, int box, std::span<const std::byte> letter);
  /// The oldest letter in the box, if there is one; does not wait.
  [[nodiscard]] std::optional<Envelope> take(int box) const;
  /// See Communicator.
  [[nodiscard]] int world_rank(int member) const { return own_.world_rank(member); }
  /// Forgets the communicator: peers may still be at it.
  void abandon() noexcept;

 private:
  struct Posted {
    std::unique_ptr<std::vector<std::byte>> letter;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void forget_taken();

  Communicator own_;
  std::vector<Posted> posted_;  ///< perhaps not yet taken
};

}  // namespace isoscale::comm
