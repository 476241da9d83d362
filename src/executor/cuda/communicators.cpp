// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/communicators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "executor/cuda/kernels/nccl_versions.hpp"
#include "executor/cuda/memory.hpp"
#include "units/text.hpp"

namespace isoscale::executor::cuda {
namespace {

std::string link_name(const LinkKind& kind) {
  if (kind.distance == 0) return fmt::format("{}, all links", mesh::name(kind.axis));
  return fmt::format("{}{}, {} links", mesh::name(kind.axis),
                     kind.distance == 1 ? "" : fmt::format(" by {}", kind.distance),
                     kind.parity == 0 ? "even" : "odd");
}

/// A communicator to be made, with its name.
struct Member {
  mesh::AxisSet axes;
  std::string name;
};

/// Returns the communicators of a plan with unique names, in the order in which all ranks make
/// them.
std::vector<Member> members_of(const CommunicatorPlan& plan, const program::RankProgram& program) {
  const std::vector<std::string>& streams = program.streams;
  std::vector<Member> members;
  for (const auto& [axes, stream] : plan.collectives) {
    const std::string name = stream < streams.size() ? streams[stream] : std::to_string(stream);
    members.push_back({axes, fmt::format("{} on {}", mesh::to_string(axes), name)});
  }
  for (const LinkKind& kind : plan.links) members.push_back({kind.axis, link_name(kind)});
  return members;
}

std::vector<int> world_ranks(const comm::Communicator& point) {
  std::vector<int> all(static_cast<std::size_t>(point.size()));
  std::iota(all.begin(), all.end(), 0);
  return point.world_ranks(all);
}

std::vector<ncclComm_t> used_in(std::size_t section, const program::ProgramSet& set,
                                const Communicators& communicators) {
  std::set<std::pair<mesh::AxisSet, program::StreamId>> uses;
  for (const program::RankProgram& program : set.programs) {
    const auto sections = program.sections();
    if (section >= sections.size()) continue;
    for (const program::Op& op : sections[section]->ops) {
      const auto* const collective = std::get_if<program::Collective>(&op.payload);
      if (collective != nullptr) uses.emplace(collective->axes, op.stream);
    }
  }
  std::vector<ncclComm_t> result;
  for (const auto& [axes, stream] : uses) result.push_back(communicators.collective(axes, stream));
  return result;
}

}  // namespace

Communicators::Communicators(const program::ProgramSet& set, const comm::Communicator& point,
                             units::Seconds limit)
    : mesh_(set.mesh),
      rank_(point.rank()),
      ranks_(world_ranks(point)),
      limit_(limit),
      plan_(communicator_plan(set)) {
  if (plan_.collectives.empty() && plan_.links.empty()) return;
  units::Nanoseconds before = comm::now();
  const auto made = [&](const std::string& name, int ranks) {
    point.count_other();
    const units::Nanoseconds after = comm::now();
    facts_.push_back(
        {.name = name, .ranks = ranks, .creation = units::to_seconds(after - before).value()});
    before = after;
  };
  NcclCommunicator world = NcclCommunicator::world(point, limit);
  made("world", point.size());
  for (const Member& one : members_of(plan_, set.of(rank_))) {
    all_.push_back(world.split(mesh::group_colour(mesh_, rank_, one.axes),
                               mesh::group_index(mesh_, rank_, one.axes), one.name, limit_));
    made(one.name, all_.back().size());
  }
  world.close();  // no longer needed; this frees the buffers that NCCL keeps for it
}

bool Communicators::suit(const program::ProgramSet& set, const comm::Communicator& point) const {
  if (set.mesh != mesh_ || world_ranks(point) != ranks_) return false;
  try {
    poll();
  } catch (const base::Error&) {
    return false;
  }
  const std::vector<Member> needed = members_of(communicator_plan(set), set.of(rank_));
  return !needed.empty() && std::ranges::all_of(needed, [&](const Member& one) {
    return std::ranges::find(all_, one.name, &NcclCommunicator::name) != all_.end();
  });
}

void Communicators::hand_over(const program::ProgramSet& set) {
  plan_ = communicator_plan(set);
  std::map<std::string, NcclCommunicator> before;
  for (NcclCommunicator& one : all_) {
    std::string name = one.name();
    before.emplace(std::move(name), std::move(one));
  }
  all_.clear();
  facts_.resize(1);
  facts_.front().creation = 0;
  for (const Member& one : members_of(plan_, set.of(rank_))) {
    all_.push_back(std::move(before.at(one.name)));
    facts_.push_back({.name = one.name, .ranks = all_.back().size()});
  }
}

std::size_t Communicators::number_of(mesh::AxisSet axes, program::StreamId stream) const {
  const auto found = std::ranges::lower_bound(plan_.collectives, std::pair{axes, stream});
  return static_cast<std::size_t>(found - plan_.collectives.begin());
}

ncclComm_t Communicators::collective(mesh::AxisSet axes, program::StreamId stream) const {
  return all_[number_of(axes, stream)].get();
}

ncclComm_t Communicators::link(const LinkKind& kind) const {
  return all_[plan_.collectives.size() + link_number(kind)].get();
}

std::size_t Communicators::link_number(const LinkKind& kind) const {
  const auto found = std::ranges::lower_bound(plan_.links, plan_.carrier(kind));
  return static_cast<std::size_t>(found - plan_.links.begin());
}

void Communicators::connect(const comm::Communicator& point,
                            const std::map<ncclComm_t, FirstCalls>& calls) {
  if (all_.empty()) return;
  const Stream stream = make_stream(Priority::high);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto found = calls.find(all_[i].get());
    if (found == calls.end()) continue;
    const auto& [collectives, exchange] = found->second;
    const units::Nanoseconds before = comm::now();
    for (const CollectiveCall& call : collectives) launch(call, stream.get());
    if (!exchange.messages.empty()) launch(exchange, stream.get());
    wait_for(all_[i], stream.get());
    point.count_other();
    facts_[i + 1].first_call = units::to_seconds(comm::now() - before).value();
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
    for_each_op<program::Collective>(program, [&](const auto& op, const auto& collective) {
      if (!lies_there(collective.send) && !lies_there(collective.receive)) return;
      found.insert(number_of(collective.axes, op.stream));
    });
    for_each_op<program::Exchange>(program, [&](const auto&, const auto& exchange) {
      for (const program::Transfer& transfer : exchange.transfers) {
        if (!lies_there(transfer.slice)) continue;
        const LinkKind kind = link_kind(set.mesh, rank, transfer.axis, transfer.offset);
        found.insert(plan_.collectives.size() + link_number(kind));
      }
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
    static_cast<void>(cudaGetLastError());  // so that no later call reports "not ready"
    communicator.poll();
    if (status == cudaSuccess) return;
    if (limit_ > units::Seconds{} && comm::now() > end) {
      throw NeverReady(
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
  // All aborts run at the same time if NCCL supports this. An abort waits for the streams of its
  // communicator. A kernel of another communicator may be stuck on these streams, and ends only
  // when its own communicator is aborted.
  begin_joint_abort();
  for (NcclCommunicator& communicator : all_) communicator.abort();
  end_joint_abort();
}

std::unique_ptr<Communicators> kept_or_new(std::unique_ptr<Communicators> kept,
                                           const program::ProgramSet& set,
                                           const comm::Communicator& point, units::Seconds limit) {
  const bool suits = kept != nullptr && kept->suit(set, point);
  if (point.all_min(suits ? 1.0 : 0.0) != 0) {
    kept->hand_over(set);
    return kept;
  }
  if (kept != nullptr) kept->abort();
  return std::make_unique<Communicators>(set, point, limit);
}

DeviceBarrier::DeviceBarrier(const program::ProgramSet& set, const Communicators& communicators) {
  std::size_t sections = 0;
  for (const program::RankProgram& program : set.programs) {
    sections = std::max(sections, program.sections().size());
  }
  for (std::size_t section = 0; section < sections; ++section) {
    of_section_.push_back(used_in(section, set, communicators));
  }
  if (std::ranges::all_of(of_section_, &std::vector<ncclComm_t>::empty)) return;
  word_ = allocate_device(units::Bytes{sizeof(float)});
}

void DeviceBarrier::enter(program::Section section, cudaStream_t stream) const {
  const auto index = static_cast<std::size_t>(section);
  if (index >= of_section_.size()) return;
  for (const ncclComm_t communicator : of_section_[index]) {
    check(ncclAllReduce(word_.get(), word_.get(), 1, ncclFloat32, ncclSum, communicator, stream));
  }
}

}  // namespace isoscale::executor::cuda
