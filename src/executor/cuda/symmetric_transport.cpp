// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/symmetric_transport.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "executor/cuda/kernels/nccl_versions.hpp"
#include "executor/op_arguments.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::Collective;
using program::CollectiveKind;

/// Throws Unsupported if NCCL 2.28 has no symmetric kernel for the collective. The names of its
/// kernels show that it has all_gather of any type, and sums in all_reduce and reduce_scatter of
/// the types f32, f16, bf16 and fp8.
void require_kernel(const Collective& collective, program::DType type) {
  const bool moves = collective.kind == CollectiveKind::all_gather;
  const bool sums = (collective.kind == CollectiveKind::all_reduce ||
                     collective.kind == CollectiveKind::reduce_scatter) &&
                    collective.reduction == program::Reduction::sum;
  const bool is_summed = type != program::DType::f64 && !is_integer(type);
  if (moves || (sums && is_summed)) return;
  throw Unsupported(fmt::format("transport=symmetric: NCCL has no symmetric kernel for {} of {}",
                                program::name(program::kind_of(collective)), program::name(type)));
}

/// Returns where a rank's symmetric collectives along `axes` access the memory of peers: for each
/// slice, its offset in the symmetric arena in bytes, then its step. All ranks of a group must have
/// the same list.
std::vector<std::uint64_t> reached(const program::RankProgram& program, mesh::AxisSet axes) {
  std::vector<std::uint64_t> addresses;
  for_each_symmetric<Collective>(
      program, [&](const program::Op& /*op*/, const Collective& collective) {
        if (collective.axes != axes) return;
        const auto add = [&](const program::Slice& slice) {
          const program::Buffer& buffer = program.buffers[slice.buffer];
          addresses.push_back(buffer.offset + slice.offset * program::element_size(buffer.dtype));
          addresses.push_back(slice.step);
        };
        if (collective.kind != CollectiveKind::all_gather) add(collective.send);
        if (collective.kind != CollectiveKind::reduce_scatter) add(collective.receive);
      });
  return addresses;
}

/// Throws Unsupported unless the buffers that peers access have the same offsets on all ranks of a
/// group, since a kernel uses its own rank's offsets for the buffers of peers.
void require_alike(const program::ProgramSet& set, mesh::AxisSet axes) {
  std::map<int, std::uint32_t> first;                      // by group: program of its first rank
  std::set<std::pair<std::uint32_t, std::uint32_t>> meet;  // pairs of programs in one group
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    const std::uint32_t program = set.program_of_rank[static_cast<std::size_t>(rank)];
    const auto [known, is_new] =
        first.try_emplace(mesh::group_colour(set.mesh, rank, axes), program);
    if (!is_new && known->second != program) meet.emplace(known->second, program);
  }
  for (const auto& [one, other] : meet) {
    if (reached(set.programs[one], axes) == reached(set.programs[other], axes)) continue;
    throw Unsupported(fmt::format(
        "transport=symmetric: ranks along {} play programs whose buffers lie at different places "
        "of their windows; use transport=nccl",
        mesh::to_string(axes)));
  }
}

/// The largest number of messages that an exchange may send. Each message has at least one thread
/// block that waits for the receiver; a GPU can run this many blocks in addition to other work.
constexpr std::uint32_t most_sends = 64;
/// The bytes that a thread block of a put copies at a time: 512 threads load 8 words of 16 bytes
/// each before they store them. Every message that an exchange sends gets as many thread blocks as
/// the largest of them has pieces of this size, within the limits here.
constexpr std::uint64_t bytes_of_block = std::uint64_t{64} << 10U;
/// The largest number of thread blocks that write at the same time, over all messages of an
/// exchange that sends no more messages than this. With an assumed latency of 1 us, NVLink at 450
/// GB/s (900 GB/s) per direction needs 450 KB (900 KB) in flight; 16 blocks have 1 MB. Next to a
/// block that waits for its receiver, a multiprocessor has no room for a block of a GEMM.
constexpr std::uint32_t most_blocks = 16;

int widest_group(const mesh::Shape& mesh) {
  int widest = 1;
  for (const mesh::Axis axis : mesh::all_axes) widest = std::max(widest, mesh[axis]);
  return widest;
}

/// Identifies the messages between two ranks, on one communicator for links, in one direction. Its
/// parts are the communicator's number (Communicators::link_number), the rank of the peer in the
/// group, and the direction.
using Lane = std::tuple<std::size_t, int, program::Direction>;

/// Converts the transfers of one rank's exchanges to messages for kernels.
class Planner {
 public:
  Planner(const program::ProgramSet& set, const Communicators& communicators,
          const Registrations& registrations, const Memory& memory)
      : mesh_(set.mesh),
        communicators_(communicators),
        registrations_(registrations),
        memory_(memory),
        group_room_(static_cast<std::size_t>(widest_group(set.mesh))) {}

  void add(const program::Op& op, const program::Exchange& exchange) {
    std::vector<std::pair<PutMessage, Lane>> received, sent;
    std::map<Lane, std::uint32_t> counts;
    for (const program::Transfer& transfer :
         transfers_by_link(mesh_, memory_.resolver.rank(), exchange)) {
      if (transfer.slice.count == 0) continue;
      const bool receives = transfer.direction == program::Direction::receive;
      Lane lane;
      PutMessage message = message_of(transfer, lane);
      require_one_stream(lane, op.stream);
      message.number = counts[lane]++;
      (receives ? received : sent).emplace_back(message, lane);
    }
    for (const auto& [lane, count] : counts) {
      if (count > put_slots) refuse(count, "to or from one rank", put_slots);
    }
    if (sent.size() > most_sends) refuse(sent.size(), "sent", most_sends);
    const std::size_t first = messages.size();
    for (auto* const list : {&received, &sent}) {
      for (const auto& [message, lane] : *list) {
        messages.push_back(message);
        messages.back().of_channel = counts[lane];
      }
    }
    calls.emplace_back(
        &exchange, call_of(received.size(), std::span{messages}.subspan(first + received.size())));
    done += sent.size() + 1;
  }

  std::vector<PutMessage> messages{};  ///< messages of all calls, one call after the other
  std::vector<std::pair<const program::Exchange*, PutCall>> calls{};
  std::size_t done = 0;  ///< number of words in PutCall::done of all calls

 private:
  [[noreturn]] static void refuse(std::size_t count, const char* which, std::uint32_t most) {
    throw Unsupported(fmt::format(
        "transport=symmetric: an exchange of {} messages {}, and puts take {} at a time", count,
        which, most));
  }

  PutMessage message_of(const program::Transfer& transfer, Lane& lane) const {
    const Resolver& resolver = memory_.resolver;
    const LinkKind kind = link_kind(mesh_, resolver.rank(), transfer.axis, transfer.offset);
    const int me = mesh::group_index(mesh_, resolver.rank(), transfer.axis);
    const int other = mesh::neighbour(mesh_, resolver.rank(), transfer.axis, transfer.offset);
    const int peer = mesh::group_index(mesh_, other, transfer.axis);
    const ncclComm_t communicator = communicators_.link(kind);
    const std::size_t link = communicators_.link_number(kind);
    require_mapped(communicator, me, peer, transfer.axis);
    lane = {link, peer, transfer.direction};
    std::byte* const arena = memory_.arenas[program::Space::symmetric].data();
    std::byte* const data = resolver.address(transfer.slice);
    return {.window = registrations_.window(communicator),
            .peer = peer,
            .data = data,
            .place = static_cast<std::uint64_t>(data - arena),
            .bytes = transfer.slice.count * resolver.element_size(transfer.slice),
            .channel = reinterpret_cast<PutChannel*>(arena + channel(link, peer)),
            .peer_channel = channel(link, me)};
  }

  /// Returns where in the window the channel for messages to and from rank `other` of a link's
  /// group begins. This offset is the same on all ranks.
  [[nodiscard]] std::uint64_t channel(std::size_t link, int other) const {
    return memory_.symmetric_end +
           (link * group_room_ + static_cast<std::size_t>(other)) * sizeof(PutChannel);
  }

  static void require_mapped(ncclComm_t communicator, int me, int peer, mesh::Axis axis) {
    const Mapped mapped = mapped_ranks(communicator, me);
    if (mapped.contains(peer)) return;
    throw Unsupported(fmt::format(
        "transport=symmetric: along {} the GPU at place {} of the group does not reach the memory "
        "at place {}, only that at places {} to {}: puts need NVLink or peer access; use "
        "transport=nccl, or put "
        "that axis within a node",
        mesh::name(axis), me, peer, mapped.first, mapped.first + mapped.count - 1));
  }

  /// Throws Unsupported if the messages of a lane are on several streams: only their order
  /// identifies them, and several streams have no common order.
  void require_one_stream(const Lane& lane, program::StreamId stream) {
    const auto [known, is_new] = streams_.try_emplace(lane, stream);
    if (is_new || known->second == stream) return;
    throw Unsupported(
        "transport=symmetric: messages to or from one rank travel on two streams, and puts take "
        "one");
  }

  static PutCall call_of(std::size_t receives, std::span<const PutMessage> sent) {
    PutCall call{.receives = static_cast<std::uint32_t>(receives),
                 .sends = static_cast<std::uint32_t>(sent.size())};
    std::uint64_t largest = 0;
    for (const PutMessage& message : sent) largest = std::max(largest, message.bytes);
    const auto wanted =
        std::clamp<std::uint64_t>((largest + bytes_of_block - 1) / bytes_of_block, 1, most_blocks);
    const auto most = std::max(1U, most_blocks / std::max(1U, call.sends));
    call.blocks_per_send = std::min(static_cast<std::uint32_t>(wanted), most);
    return call;
  }

  const mesh::Shape& mesh_;
  const Communicators& communicators_;
  const Registrations& registrations_;
  const Memory& memory_;
  std::size_t group_room_;
  std::map<Lane, program::StreamId> streams_;
};

}  // namespace

void require_windows(const program::ProgramSet& set, const Communicators& communicators) {
  bool all = true;
  // The loop must not end early: maps_windows() is collective, so other ranks would wait for this
  // one on the remaining communicators.
  for (const ncclComm_t communicator : communicators.touching(set, program::Space::symmetric)) {
    bool maps = false;
    check(maps_windows(communicator, maps));
    all = all && maps;
  }
  if (!all) {
    throw Unsupported(
        "NCCL makes no symmetric windows on this machine: its GPUs do not reach each other's "
        "memory, or NCCL_WIN_ENABLE or NCCL_CUMEM_ENABLE is 0");
  }
}

void require_symmetric(const program::ProgramSet& set, const Communicators& communicators) {
  std::map<std::pair<mesh::AxisSet, program::StreamId>, int> groups;
  for (const program::RankProgram& program : set.programs) {
    for_each_symmetric<Collective>(
        program, [&](const program::Op& op, const Collective& collective) {
          const program::Slice& slice =
              collective.send.buffer != program::no_buffer ? collective.send : collective.receive;
          if (slice.buffer == program::no_buffer) return;
          require_kernel(collective, program.buffers[slice.buffer].dtype);
          groups[{collective.axes, op.stream}] = mesh::group_size(set.mesh, collective.axes);
        });
  }
  for (const auto& [group, size] : groups) {
    const auto& [axes, stream] = group;
    require_alike(set, axes);
    if (mapped_ranks(communicators.collective(axes, stream), 0).count == size) continue;
    throw Unsupported(fmt::format(
        "transport=symmetric: not all GPUs along {} reach each other's memory: NCCL's symmetric "
        "kernels need NVLink or peer access; use transport=nccl, or put that axis within a node",
        mesh::to_string(axes)));
  }
}

units::Bytes Puts::room(const program::ProgramSet& set, const Communicators& communicators) {
  bool any = false;
  for (const program::RankProgram& program : set.programs) {
    for_each_symmetric<program::Exchange>(program, [&](const auto&, const auto&) { any = true; });
  }
  if (!any) return units::Bytes{0};
  return units::Bytes{communicators.link_count() *
                      static_cast<std::size_t>(widest_group(set.mesh)) * sizeof(PutChannel)};
}

Puts::Puts(const program::ProgramSet& set, const Communicators& communicators,
           const Registrations& registrations, const Memory& memory)
    : Puts() {
  Planner planner{set, communicators, registrations, memory};
  for_each_symmetric<program::Exchange>(
      set.of(memory.resolver.rank()),
      [&](const program::Op& op, const program::Exchange& exchange) { planner.add(op, exchange); });
  if (planner.calls.empty()) return;
  const std::size_t message_bytes = planner.messages.size() * sizeof(PutMessage);
  const std::size_t done_bytes = planner.done * sizeof(std::uint32_t);
  bytes_ = units::Bytes{message_bytes + done_bytes};
  messages_ = allocate_device(units::Bytes{message_bytes});
  done_ = allocate_device(units::Bytes{done_bytes});
  if (message_bytes > 0) {
    check(cudaMemcpy(messages_.get(), planner.messages.data(), message_bytes, cudaMemcpyDefault));
  }
  stop_ = pinned_words(1);
  const auto* messages = static_cast<const PutMessage*>(messages_.get());
  auto* done = static_cast<std::uint32_t*>(done_.get());
  for (auto& [exchange, call] : planner.calls) {
    call.messages = std::exchange(messages, messages + call.receives + call.sends);
    call.done = std::exchange(done, done + call.sends + 1);
    call.stop = words_of(stop_);
    calls_.emplace(exchange, call);
  }
}

const PutCall& Puts::of(const program::Exchange& exchange) const { return calls_.at(&exchange); }

void Puts::stop() noexcept {
  if (stop_) *static_cast<volatile std::uint32_t*>(stop_.get()) = 1;
}

void Puts::abandon() noexcept { abandon_all(messages_, done_, stop_); }

}  // namespace isoscale::executor::cuda
