// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/communicators.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

#include "executor/cuda/check.hpp"
#include "executor/cuda/handles.hpp"
#include "executor/cuda/nccl_call.hpp"
#include "executor/cuda/nccl_versions.hpp"
#include "units/text.hpp"

namespace isoscale::executor::cuda {
namespace {

std::string link_name(const LinkKind& kind) {
  if (kind.distance == 0) return fmt::format("{}, all links", mesh::name(kind.axis));
  return fmt::format("{}{}, {} links", mesh::name(kind.axis),
                     kind.distance == 1 ? "" : fmt::format(" by {}", kind.distance),
                     kind.parity == 0 ? "even" : "odd");
}

/// on_collective(op, collective) and on_transfer(transfer) for all communication of a program.
template <class OnCollective, class OnTransfer>
void for_each_communication(const program::RankProgram& program, const OnCollective& on_collective,
                            const OnTransfer& on_transfer) {
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) {
      if (const auto* collective = std::get_if<program::Collective>(&op.payload)) {
        on_collective(op, *collective);
      } else if (const auto* exchange = std::get_if<program::Exchange>(&op.payload)) {
        for (const program::Transfer& transfer : exchange->transfers) on_transfer(transfer);
      }
    }
  }
}

}  // namespace

Communicators::Communicators(const program::ProgramSet& set, const comm::Communicator& point,
                             units::Seconds limit)
    : mesh_(set.mesh), rank_(point.rank()), limit_(limit), plan_(communicator_plan(set)) {
  if (plan_.collectives.empty() && plan_.links.empty()) return;
  const units::Nanoseconds before = comm::now();
  NcclCommunicator world = NcclCommunicator::world(point, limit);
  point.count_other();
  facts_.push_back({.name = "world",
                    .ranks = point.size(),
                    .creation = units::to_seconds(comm::now() - before),
                    .first_call = std::nullopt});
  const std::vector<std::string>& streams = set.of(point.rank()).streams;
  for (const auto& [axes, stream] : plan_.collectives) {
    const std::string name = stream < streams.size() ? streams[stream] : std::to_string(stream);
    add(point, world, axes, fmt::format("{} on {}", mesh::to_string(axes), name));
  }
  for (const LinkKind& kind : plan_.links) add(point, world, kind.axis, link_name(kind));
  world.close();  // nothing is called on it, and NCCL keeps buffers for it
}

void Communicators::add(const comm::Communicator& point, const NcclCommunicator& world,
                        mesh::AxisSet axes, const std::string& name) {
  const units::Nanoseconds before = comm::now();
  all_.push_back(world.split(mesh::group_colour(mesh_, point.rank(), axes),
                             mesh::group_index(mesh_, point.rank(), axes), name, limit_));
  point.count_other();
  facts_.push_back({.name = name,
                    .ranks = all_.back().size(),
                    .creation = units::to_seconds(comm::now() - before),
                    .first_call = std::nullopt});
}

ncclComm_t Communicators::collective(mesh::AxisSet axes, program::StreamId stream) const {
  const auto found = std::ranges::lower_bound(plan_.collectives, std::pair{axes, stream});
  return all_[static_cast<std::size_t>(found - plan_.collectives.begin())].get();
}

ncclComm_t Communicators::link(const LinkKind& kind) const {
  return all_[plan_.collectives.size() + link_number(kind)].get();
}

std::size_t Communicators::link_number(const LinkKind& kind) const {
  const auto found = std::ranges::lower_bound(plan_.links, plan_.carrier(kind));
  return static_cast<std::size_t>(found - plan_.links.begin());
}

void Communicators::connect(const comm::Communicator& point, const FirstCalls& calls) {
  if (all_.empty()) return;
  const Stream stream = make_stream(Priority::high);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const ncclComm_t communicator = all_[i].get();
    const units::Nanoseconds before = comm::now();
    bool any = false;
    for (const CollectiveCall& call : calls.collectives) {
      if (call.communicator != communicator) continue;
      launch(call, stream.get());
      any = true;
    }
    if (const auto found = calls.exchanges.find(communicator); found != calls.exchanges.end()) {
      launch(found->second, stream.get());
      any = true;
    }
    if (!any) continue;
    wait_for(all_[i], stream.get());
    point.count_other();
    facts_[i + 1].first_call = units::to_seconds(comm::now() - before);
  }
}

std::vector<ncclComm_t> Communicators::all() const {
  std::vector<ncclComm_t> result;
  for (const NcclCommunicator& communicator : all_) result.push_back(communicator.get());
  return result;
}

std::vector<ncclComm_t> Communicators::touching(const program::ProgramSet& set,
                                                program::Space space) const {
  std::set<std::size_t> found;
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    const program::RankProgram& program = set.of(rank);
    const auto lies_there = [&](const program::Slice& slice) {
      return slice.buffer != program::no_buffer && program.buffers[slice.buffer].space == space;
    };
    for_each_communication(
        program,
        [&](const program::Op& op, const program::Collective& collective) {
          if (!lies_there(collective.send) && !lies_there(collective.receive)) return;
          const auto at =
              std::ranges::lower_bound(plan_.collectives, std::pair{collective.axes, op.stream});
          found.insert(static_cast<std::size_t>(at - plan_.collectives.begin()));
        },
        [&](const program::Transfer& transfer) {
          if (!lies_there(transfer.slice)) return;
          const LinkKind kind =
              plan_.carrier(link_kind(set.mesh, rank, transfer.axis, transfer.offset));
          const auto at = std::ranges::lower_bound(plan_.links, kind);
          found.insert(plan_.collectives.size() +
                       static_cast<std::size_t>(at - plan_.links.begin()));
        });
  }
  std::vector<ncclComm_t> result;
  for (const std::size_t index : found) result.push_back(all_[index].get());
  return result;
}

void Communicators::wait_for(const NcclCommunicator& communicator, cudaStream_t stream) const {
  const units::Nanoseconds end = comm::now() + units::to_nanoseconds(limit_);
  const Event done = make_event(Timing::off);
  check(cudaEventRecord(done.get(), stream));
  while (true) {
    const cudaError_t status = cudaEventQuery(done.get());
    if (status != cudaErrorNotReady) check(status);
    communicator.poll();
    if (status == cudaSuccess) return;
    if (limit_ > units::Seconds{} && comm::now() > end) {
      throw NcclError(
          fmt::format("the first calls on NCCL communicator {} did not end within {}: "
                      "a rank is missing, or the ranks cannot reach each other",
                      communicator.name(), units::format(limit_)));
    }
    std::this_thread::yield();
  }
}

void Communicators::poll() const {
  for (const NcclCommunicator& communicator : all_) communicator.poll();
}

void Communicators::close() {
  for (NcclCommunicator& communicator : all_) communicator.close();
}

void Communicators::abort() noexcept {
  // At once, where NCCL can: an abort waits for the communicator's streams, and these may stand
  // behind a kernel of another communicator that is to be aborted too.
  begin_joint_abort();
  for (NcclCommunicator& communicator : all_) communicator.abort();
  end_joint_abort();
}

}  // namespace isoscale::executor::cuda
