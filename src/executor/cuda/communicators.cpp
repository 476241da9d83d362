// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/communicators.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "executor/cuda/check.hpp"
#include "executor/cuda/handles.hpp"
#include "executor/cuda/memory.hpp"

namespace isoscale::executor::cuda {
namespace {

std::string link_name(const LinkKind& kind) {
  return fmt::format("{}{}, {} links", mesh::name(kind.axis),
                     kind.distance == 1 ? "" : fmt::format(" by {}", kind.distance),
                     kind.parity == 0 ? "even" : "odd");
}

}  // namespace

LinkKind link_kind(const mesh::Shape& mesh, int rank, mesh::Axis axis, std::int32_t offset) {
  const int extent = mesh[axis];
  const int distance = std::abs(offset);
  const int here = mesh::coordinates(mesh, rank)[axis];
  // A link begins at the end from which its other end is +distance away.
  const int begin = offset >= 0 ? here : ((here + offset) % extent + extent) % extent;
  return {.axis = axis, .distance = distance, .parity = distance == 0 ? 0 : begin / distance % 2};
}

CommunicatorPlan communicator_plan(const CommunicationNeeds& needs, const mesh::Shape& mesh) {
  std::set<LinkKind> links;
  for (const auto& [axis, offsets] : needs.exchanges) {
    for (const std::int32_t offset : offsets) {
      for (int rank = 0; rank < mesh.size(); ++rank) {
        links.insert(link_kind(mesh, rank, axis, offset));
      }
    }
  }
  return {.collectives = needs.collectives, .links = {links.begin(), links.end()}};
}

Communicators::Communicators(const CommunicationNeeds& needs, const mesh::Shape& mesh,
                             const comm::Communicator& point, std::span<const std::string> streams,
                             units::Seconds limit)
    : mesh_(mesh),
      rank_(point.rank()),
      limit_(limit),
      plan_(communicator_plan(needs, mesh)),
      offsets_(needs.exchanges) {
  if (plan_.collectives.empty() && plan_.links.empty()) return;
  const units::Nanoseconds before = comm::now();
  world_ = NcclCommunicator::world(point, limit);
  facts_.push_back({.name = "world",
                    .ranks = point.size(),
                    .creation = units::to_seconds(comm::now() - before),
                    .first_call = {}});
  for (const auto& [axes, stream] : plan_.collectives) {
    const std::string name = stream < streams.size() ? streams[stream] : std::to_string(stream);
    add(point, axes, fmt::format("{} on {}", mesh::to_string(axes), name));
  }
  for (const LinkKind& kind : plan_.links) add(point, kind.axis, link_name(kind));
}

void Communicators::add(const comm::Communicator& point, mesh::AxisSet axes,
                        const std::string& name) {
  const units::Nanoseconds before = comm::now();
  all_.push_back(world_.split(mesh::group_colour(mesh_, point.rank(), axes),
                              mesh::group_index(mesh_, point.rank(), axes), name, limit_));
  facts_.push_back({.name = name,
                    .ranks = all_.back().size(),
                    .creation = units::to_seconds(comm::now() - before),
                    .first_call = {}});
}

ncclComm_t Communicators::collective(mesh::AxisSet axes, program::StreamId stream) const {
  const auto found = std::ranges::lower_bound(plan_.collectives, std::pair{axes, stream});
  return all_[static_cast<std::size_t>(found - plan_.collectives.begin())].get();
}

ncclComm_t Communicators::link(const LinkKind& kind) const {
  const auto found = std::ranges::lower_bound(plan_.links, kind);
  return all_[plan_.collectives.size() + static_cast<std::size_t>(found - plan_.links.begin())]
      .get();
}

void Communicators::connect() {
  if (all_.empty()) return;
  const Stream stream = make_stream(Priority::high);
  const DeviceMemory scratch = allocate_device(units::Bytes{2 * sizeof(float)});
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const units::Nanoseconds before = comm::now();
    if (i < plan_.collectives.size()) {
      check(ncclAllReduce(scratch.get(), scratch.get(), 1, ncclFloat32, ncclSum, all_[i].get(),
                          stream.get()));
    } else {
      connect_links(plan_.links[i - plan_.collectives.size()], all_[i].get(), scratch.get(),
                    stream.get());
    }
    check(cudaStreamSynchronize(stream.get()));
    all_[i].poll();
    facts_[i + 1].first_call = units::to_seconds(comm::now() - before);
  }
}

void Communicators::connect_links(const LinkKind& kind, ncclComm_t communicator, void* scratch,
                                  cudaStream_t stream) const {
  auto* const bytes = static_cast<std::byte*>(scratch);
  NcclGroup group;
  for (const std::int32_t sent : offsets_.at(kind.axis)) {
    const auto peer = [&](std::int32_t offset) {
      return mesh::group_index(mesh_, mesh::neighbour(mesh_, rank_, kind.axis, offset), kind.axis);
    };
    if (link_kind(mesh_, rank_, kind.axis, sent) == kind) {
      check(ncclSend(bytes, 1, ncclFloat32, peer(sent), communicator, stream));
    }
    if (link_kind(mesh_, rank_, kind.axis, -sent) == kind) {
      check(ncclRecv(bytes + sizeof(float), 1, ncclFloat32, peer(-sent), communicator, stream));
    }
  }
  group.end();
}

void Communicators::poll() const {
  for (const NcclCommunicator& communicator : all_) communicator.poll();
}

void Communicators::close() {
  for (NcclCommunicator& communicator : all_) communicator.close();
  world_.close();
}

void Communicators::abort() noexcept {
  for (NcclCommunicator& communicator : all_) communicator.abort();
  world_.abort();
}

}  // namespace isoscale::executor::cuda
