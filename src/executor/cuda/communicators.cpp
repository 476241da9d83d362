// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/communicators.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <thread>

#include "executor/cuda/memory.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::executor::cuda {
namespace {

std::string link_name(const LinkKind& kind) {
  if (kind.distance == 0) return fmt::format("{}, all links", mesh::name(kind.axis));
  constexpr std::array parities{"even", "odd", "closing"};
  return fmt::format("{}{}, {} links", mesh::name(kind.axis),
                     kind.distance == 1 ? "" : fmt::format(" by {}", kind.distance),
                     parities.at(static_cast<std::size_t>(kind.parity)));
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

/// The axis, offset and direction that messages of one kind have in common.
struct MessageKind {
  mesh::Axis axis = mesh::Axis::pp;
  std::int32_t offset = 1;
  program::Direction direction = program::Direction::send;

  auto operator<=>(const MessageKind&) const = default;
};

/// The Exchange ops of a program that have messages along an axis: their streams, and for each op
/// the kinds of its messages.
struct AxisExchanges {
  std::set<program::StreamId> streams;
  std::vector<std::set<MessageKind>> ops;
};

std::map<mesh::Axis, AxisExchanges> exchanges_of(const program::RankProgram& program) {
  std::map<mesh::Axis, AxisExchanges> result;
  for_each_op<program::Exchange>(program, [&](const program::Op& op,
                                              const program::Exchange& exchange) {
    std::map<mesh::Axis, std::set<MessageKind>> messages;
    for (const program::Transfer& at : exchange.transfers) {
      messages[at.axis].insert({.axis = at.axis, .offset = at.offset, .direction = at.direction});
    }
    for (auto& [axis, of_axis] : messages) {
      result[axis].streams.insert(op.stream);
      result[axis].ops.push_back(std::move(of_axis));
    }
  });
  return result;
}

/// True if each op that sends a message by some offset along the axis also receives a message from
/// the rank at the opposite offset, and vice versa, as in shifts and halo exchanges.
bool is_shift(const AxisExchanges& exchanges) {
  using enum program::Direction;
  return std::ranges::all_of(exchanges.ops, [](const std::set<MessageKind>& op) {
    return std::ranges::all_of(op, [&op](const MessageKind& message) {
      return op.contains({.axis = message.axis,
                          .offset = -message.offset,
                          .direction = message.direction == send ? receive : send});
    });
  });
}

/// True if is_shift() holds for all exchanges along an axis, and all ranks of a group have the same
/// exchanges in the same order.
bool corresponds(const program::ProgramSet& set, mesh::Axis axis,
                 const std::vector<AxisExchanges>& of_programs) {
  const auto of_rank = [&](int rank) -> const AxisExchanges& {
    return of_programs[set.program_of_rank[static_cast<std::size_t>(rank)]];
  };
  if (!std::ranges::all_of(of_programs, is_shift)) return false;
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    if (of_rank(rank).ops != of_rank(mesh::neighbour(set.mesh, rank, axis, 1)).ops) return false;
  }
  return true;
}

/// Returns the axes on which all links share one communicator. `exchanges` has, for each program,
/// its exchanges by axis.
mesh::AxisSet joined_axes(const program::ProgramSet& set, const CommunicationNeeds& needs,
                          const std::vector<std::map<mesh::Axis, AxisExchanges>>& exchanges) {
  mesh::AxisSet joined;
  for (const auto& [axis, offsets] : needs.exchanges) {
    std::vector<AxisExchanges> of_programs;
    for (const auto& of_program : exchanges) {
      const auto found = of_program.find(axis);
      of_programs.push_back(found == of_program.end() ? AxisExchanges{} : found->second);
    }
    const bool has_one_stream = std::ranges::all_of(
        of_programs, [](const AxisExchanges& at) { return at.streams.size() <= 1; });
    if (!has_one_stream) continue;
    const int extent = set.mesh[axis];
    std::set<int> hops;
    for (const std::int32_t offset : offsets) hops.insert((offset % extent + extent) % extent);
    // Two offsets that are equal modulo the extent lead to the same rank. On a shared
    // communicator, only the order of their messages tells them apart. Links of such an axis
    // therefore share a communicator only if all ranks of a group have the same exchanges in the
    // same order.
    if (hops.size() < offsets.size() && !corresponds(set, axis, of_programs)) continue;
    joined |= axis;
  }
  return joined;
}

}  // namespace

LinkKind link_kind(const mesh::Shape& mesh, int rank, mesh::Axis axis, std::int32_t offset) {
  const int extent = mesh[axis];
  const int distance = std::abs(offset);
  const int here = mesh::coordinates(mesh, rank)[axis];
  // A link begins at the rank from which the other rank is reached by `distance` steps in positive
  // direction.
  const int begin = offset >= 0 ? here : ((here + offset) % extent + extent) % extent;
  if (distance == 0) return {.axis = axis, .distance = 0};
  const int parity = begin / distance % 2;
  // A link that wraps around ends where one of parity 0 begins.
  const bool closes = parity == 0 && begin + distance >= extent;
  return {.axis = axis, .distance = distance, .parity = closes ? 2 : parity};
}

std::vector<program::Transfer> transfers_by_link(const mesh::Shape& mesh, int rank,
                                                 const program::Exchange& exchange) {
  std::vector<program::Transfer> transfers = exchange.transfers;
  std::ranges::stable_sort(transfers, {}, [&](const program::Transfer& transfer) {
    return link_kind(mesh, rank, transfer.axis, transfer.offset);
  });
  return transfers;
}

CommunicatorPlan communicator_plan(const program::ProgramSet& set) {
  const CommunicationNeeds needs = communication_needs(set);
  std::vector<std::map<mesh::Axis, AxisExchanges>> exchanges;
  std::vector<std::set<MessageKind>> messages;  // message kinds of each program
  for (const program::RankProgram& program : set.programs) {
    exchanges.push_back(exchanges_of(program));
    std::set<MessageKind>& all = messages.emplace_back();
    for (const auto& [axis, along] : exchanges.back()) {
      for (const std::set<MessageKind>& op : along.ops) all.insert(op.begin(), op.end());
    }
  }
  CommunicatorPlan plan{.collectives = {needs.collectives.begin(), needs.collectives.end()},
                        .links = {},
                        .joined = joined_axes(set, needs, exchanges)};
  std::set<LinkKind> links;
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    const std::uint32_t program = set.program_of_rank[static_cast<std::size_t>(rank)];
    for (const MessageKind& message : messages[program]) {
      links.insert(plan.carrier(link_kind(set.mesh, rank, message.axis, message.offset)));
    }
  }
  plan.links.assign(links.begin(), links.end());
  return plan;
}

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
  std::vector<std::set<std::pair<mesh::AxisSet, program::StreamId>>> uses;  // by section
  for (const program::RankProgram& program : set.programs) {
    uses.resize(std::max(uses.size(), program.section_count()));
    for (std::size_t i = 0; i < program.section_count(); ++i) {
      for (const program::Op& op : program.section(static_cast<program::Section>(i)).ops) {
        const auto* const collective = std::get_if<program::Collective>(&op.payload);
        if (collective != nullptr) uses[i].emplace(collective->axes, op.stream);
      }
    }
  }
  for (const auto& of_section : uses) {
    std::vector<ncclComm_t>& used = of_section_.emplace_back();
    for (const auto& [axes, stream] : of_section) {
      used.push_back(communicators.collective(axes, stream));
    }
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
