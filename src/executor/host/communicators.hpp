// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/communication_needs.hpp"

namespace isoscale::executor::host {

/// The communicators of one rank.
class Communicators {
 public:
  /// Collective over `point`: one split per need, in one order on all ranks.
  Communicators(CommunicationNeeds needs, const mesh::Shape& mesh, const comm::Communicator& point);

  [[nodiscard]] MPI_Comm collective(mesh::AxisSet axes, program::StreamId stream) const;
  [[nodiscard]] MPI_Comm exchange(mesh::Axis axis) const;

  /// Tag of message number `sequence` among those of this link in a play. Links of one axis that
  /// may join the same two ranks (+1 and -1 in a group of two) have tags apart. At most 32767, the
  /// least that MPI guarantees: a number comes again after thousands of messages, which MPI keeps
  /// in order.
  [[nodiscard]] int tag(mesh::Axis axis, std::int32_t sender_offset, std::uint64_t sequence) const;

  /// Forgets all without freeing: peers may be stuck in them.
  void abandon() noexcept;

 private:
  CommunicationNeeds needs_;
  std::vector<comm::Communicator> collectives_;
  std::map<mesh::Axis, comm::Communicator> exchanges_;
};

}  // namespace isoscale::executor::host
