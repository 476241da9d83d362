// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/nccl_call.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "base/error.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/nccl_communicator.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::CollectiveKind;

/// A collective made of messages, some of which a rank sends to itself.
class Messages {
 public:
  Messages(const CollectiveCall& call, cudaStream_t stream) : call_(call), stream_(stream) {}

  void gather() const {
    const CollectiveData& d = call_.data;
    send(static_cast<std::uint64_t>(call_.root), d.send, d.count);
    if (!d.is_root) return;
    for (std::uint64_t from = 0; from < d.members; ++from) {
      receive(from, d.part(d.receive, from), d.count);
    }
  }

  void scatter() const {
    const CollectiveData& d = call_.data;
    receive(static_cast<std::uint64_t>(call_.root), d.receive, d.count);
    if (!d.is_root) return;
    for (std::uint64_t to = 0; to < d.members; ++to) send(to, d.part(d.send, to), d.count);
  }

  void all_to_all() const {
    const CollectiveData& d = call_.data;
    std::byte *from = d.send, *to = d.receive;
    for (std::uint64_t other = 0; other < d.members; ++other) {
      const bool even = call_.send_counts.empty();
      const std::uint64_t sent = even ? d.count : call_.send_counts[other];
      const std::uint64_t received = even ? d.count : call_.receive_counts[other];
      send(other, from, sent);
      receive(other, to, received);
      from += sent * d.element;
      to += received * d.element;
    }
  }

 private:
  void send(std::uint64_t to, const std::byte* data, std::uint64_t count) const {
    if (count == 0) return;
    check(ncclSend(data, count, call_.type, static_cast<int>(to), call_.communicator, stream_));
  }
  void receive(std::uint64_t from, std::byte* data, std::uint64_t count) const {
    if (count == 0) return;
    check(ncclRecv(data, count, call_.type, static_cast<int>(from), call_.communicator, stream_));
  }

  const CollectiveCall& call_;
  cudaStream_t stream_;
};

bool overlap(const std::byte* a, std::uint64_t a_bytes, const std::byte* b, std::uint64_t b_bytes) {
  return a != nullptr && b != nullptr && a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

ncclRedOp_t nccl_operation(program::Reduction reduction) {
  switch (reduction) {
    case program::Reduction::min:
      return ncclMin;
    case program::Reduction::max:
      return ncclMax;
    case program::Reduction::sum:
      break;
  }
  return ncclSum;
}

bool is_made_of_messages(CollectiveKind kind) {
  return kind == CollectiveKind::gather || kind == CollectiveKind::scatter ||
         kind == CollectiveKind::all_to_all;
}

void launch(const CollectiveCall& call, cudaStream_t stream) {
  const CollectiveData& d = call.data;
  const ncclComm_t communicator = call.communicator;
  NcclGroup group;
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      check(ncclAllReduce(d.send, d.receive, d.count, call.type, call.operation, communicator,
                          stream));
      break;
    case CollectiveKind::barrier:
      check(ncclAllReduce(d.send, d.receive, d.count, ncclUint8, ncclSum, communicator, stream));
      break;
    case CollectiveKind::reduce_scatter:
      check(ncclReduceScatter(d.send, d.receive, d.count, call.type, call.operation, communicator,
                              stream));
      break;
    case CollectiveKind::all_gather:
      check(ncclAllGather(d.send, d.receive, d.count, call.type, communicator, stream));
      break;
    case CollectiveKind::broadcast: {
      std::byte* const buffer = d.receive != nullptr ? d.receive : d.send;
      const std::byte* const from = d.is_root && d.send != nullptr ? d.send : buffer;
      check(ncclBroadcast(from, buffer, d.count, call.type, call.root, communicator, stream));
      break;
    }
    case CollectiveKind::reduce:
      check(ncclReduce(d.send, d.receive, d.count, call.type, call.operation, call.root,
                       communicator, stream));
      break;
    case CollectiveKind::gather:
      Messages{call, stream}.gather();
      break;
    case CollectiveKind::scatter:
      Messages{call, stream}.scatter();
      break;
    case CollectiveKind::all_to_all:
      Messages{call, stream}.all_to_all();
      break;
  }
  group.end();
}

void require_possible(const CollectiveCall& call) {
  const CollectiveData& d = call.data;
  const std::uint64_t part = d.count * d.element, whole = part * d.members;
  const auto refuse_unless = [](bool possible, const char* what) {
    if (!possible) {
      throw base::Error(
          fmt::format("NCCL cannot do {} in place like that: give what is received "
                      "memory of its own",
                      what));
    }
  };
  if (call.kind == CollectiveKind::reduce_scatter && overlap(d.send, whole, d.receive, part)) {
    refuse_unless(d.receive == d.part(d.send, d.me), "a reduce_scatter");
  }
  if (call.kind == CollectiveKind::all_gather && overlap(d.receive, whole, d.send, part)) {
    refuse_unless(d.send == d.part(d.receive, d.me), "an all_gather");
  }
  if (call.kind == CollectiveKind::all_to_all) {
    refuse_unless(!overlap(d.send, d.sent * d.element, d.receive, d.received * d.element),
                  "an all_to_all");
  }
}

void launch(const ExchangeCall& call, cudaStream_t stream) {
  NcclGroup group;
  for (const Message& message : call.messages) {
    if (message.count == 0) continue;
    if (message.direction == program::Direction::send) {
      check(ncclSend(message.data, message.count, message.type, message.peer, message.communicator,
                     stream));
    } else {
      check(ncclRecv(message.data, message.count, message.type, message.peer, message.communicator,
                     stream));
    }
  }
  group.end();
}

}  // namespace isoscale::executor::cuda
