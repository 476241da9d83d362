// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/communicators.hpp"

#include <algorithm>

namespace isoscale::executor::host {
namespace {

constexpr std::uint64_t tag_values = 32768;

comm::Communicator split(const comm::Communicator& point, const mesh::Shape& mesh,
                         mesh::AxisSet axes) {
  return point.split(mesh::group_colour(mesh, point.rank(), axes),
                     mesh::group_index(mesh, point.rank(), axes));
}

}  // namespace

Communicators::Communicators(CommunicationNeeds needs, const mesh::Shape& mesh,
                             const comm::Communicator& point)
    : needs_(std::move(needs)) {
  for (const auto& [axes, stream] : needs_.collectives) {
    collectives_.push_back(split(point, mesh, axes));
  }
  for (const auto& [axis, offsets] : needs_.exchanges) {
    exchanges_.emplace(axis, split(point, mesh, axis));
  }
}

MPI_Comm Communicators::collective(mesh::AxisSet axes, program::StreamId stream) const {
  const auto found = std::ranges::lower_bound(needs_.collectives, std::pair{axes, stream});
  return collectives_[static_cast<std::size_t>(found - needs_.collectives.begin())].get();
}

MPI_Comm Communicators::exchange(mesh::Axis axis) const { return exchanges_.at(axis).get(); }

int Communicators::tag(mesh::Axis axis, std::int32_t sender_offset, std::uint64_t sequence) const {
  const std::vector<std::int32_t>& offsets = needs_.exchanges.at(axis);
  const auto link = static_cast<std::uint64_t>(std::ranges::lower_bound(offsets, sender_offset) -
                                               offsets.begin());
  const std::uint64_t window = tag_values / offsets.size();
  return static_cast<int>(link * window + sequence % window);
}

void Communicators::abandon() noexcept {
  for (comm::Communicator& communicator : collectives_) communicator.abandon();
  for (auto& [axis, communicator] : exchanges_) communicator.abandon();
}

}  // namespace isoscale::executor::host
