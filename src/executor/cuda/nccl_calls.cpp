// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/communicators.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <thread>

#include "base/error.hpp"
#include "executor/cuda/kernels/nccl_versions.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::executor::cuda {
namespace {

constexpr std::chrono::microseconds pause{100};  // between two polls

/// True if the result means that another rank has gone or that the network failed.
bool is_loss(ncclResult_t result) { return result == ncclRemoteError || result == ncclSystemError; }

void require_sound(ncclComm_t communicator, const std::string& name, const char* when) {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(communicator, &state));
  if (state == ncclSuccess || state == ncclInProgress) return;
  const char* const detail = ncclGetLastError(communicator);
  const std::string text =
      fmt::format("NCCL communicator {} failed {}: {}{}{}", name, when, ncclGetErrorString(state),
                  detail == nullptr ? "" : ": ", detail == nullptr ? "" : detail);
  if (is_refusal(state)) throw NcclRefusal(text);
  if (is_loss(state)) throw NoAnswer(text);
  throw NcclError(text);
}

/// Does what check() does, but throws NoAnswer if another rank cannot be reached.
void check_reached(ncclResult_t result) {
  try {
    check(result);
  } catch (const NcclError& error) {
    if (is_loss(result)) throw NoAnswer(error.what());
    throw;
  }
}

/// Polls `communicator` until its calls in the background are done; throws NeverReady after `limit`
/// (0: no limit).
void wait_for(ncclComm_t communicator, const std::string& name, units::Seconds limit) {
  const units::Nanoseconds end = comm::now() + units::to_nanoseconds(limit);
  while (true) {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(communicator, &state));
    if (state != ncclInProgress) break;
    if (limit > units::Seconds{} && comm::now() > end) {
      throw NeverReady(fmt::format(
          "NCCL communicator {} was not ready after {}: a rank is missing, or the ranks cannot "
          "reach each other; NCCL_DEBUG=INFO prints more, NCCL_SOCKET_IFNAME chooses the network",
          name, units::format(limit)));
    }
    std::this_thread::sleep_for(pause);
  }
  require_sound(communicator, name, "while it was set up");
}

using program::CollectiveKind;

bool overlap(const std::byte* a, std::uint64_t a_bytes, const std::byte* b, std::uint64_t b_bytes) {
  return a != nullptr && b != nullptr && a < b + b_bytes && b < a + a_bytes;
}

}  // namespace

NcclCommunicator::NcclCommunicator(std::string name)
    : name_(std::make_unique<const std::string>(std::move(name))) {}

NcclCommunicator NcclCommunicator::world(const comm::Communicator& point, units::Seconds limit) {
  ncclUniqueId id{};
  const std::string problem = comm::problem_in([&] {
    if (point.rank() == 0) check(ncclGetUniqueId(&id));
  });
  if (const comm::Vote vote = comm::all_ok(point, problem); !vote.ok) throw NcclError(vote.why);
  id = point.broadcast(id);

  NcclCommunicator result{"world"};
  result.size_ = point.size();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  set_name(config, result.name());
  ncclComm_t communicator = nullptr;
  const ncclResult_t started =
      ncclCommInitRankConfig(&communicator, point.size(), id, point.rank(), &config);
  result.handle_.reset(communicator);
  result.settle(started, limit);
  return result;
}

NcclCommunicator NcclCommunicator::split(int colour, int key, const std::string& name,
                                         units::Seconds limit) const {
  NcclCommunicator result{name};
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  set_name(config, result.name());
  // NCCL may write the new communicator to `place` and read its name in the background even after a
  // failure, so this memory is not freed then.
  auto place = std::make_unique<ncclComm_t>(nullptr);
  try {
    // settle() polls the parent, since the new communicator does not exist before the split is
    // done.
    settle(ncclCommSplit(get(), colour, key, place.get(), &config), limit);
  } catch (...) {
    static_cast<void>(place.release());
    static_cast<void>(result.name_.release());
    throw;
  }
  const ncclComm_t communicator = *place;
  result.handle_.reset(communicator);
  if (communicator == nullptr) {
    throw NcclError(fmt::format("NCCL made no communicator {} on this rank", name));
  }
  wait_for(communicator, name, limit);
  check(ncclCommCount(communicator, &result.size_));
  return result;
}

void NcclCommunicator::poll() const { require_sound(get(), name(), "in the background"); }

void NcclCommunicator::settle(ncclResult_t result, units::Seconds limit) const {
  check(result);
  if (get() != nullptr) wait_for(get(), name(), limit);
}

void NcclCommunicator::close() {
  const ncclComm_t communicator = handle_.release();
  if (communicator == nullptr) return;
  check(ncclCommFinalize(communicator));
  wait_for(communicator, name(), units::Seconds{30});
  check(ncclCommDestroy(communicator));
}

void NcclCommunicator::abort() noexcept { handle_.reset(); }

NcclGroup::NcclGroup() { check(ncclGroupStart()); }

NcclGroup::~NcclGroup() {
  // The group is open only if a call in it failed, and the exception reports that already.
  if (is_open_) static_cast<void>(ncclGroupEnd());
}

void NcclGroup::end() {
  is_open_ = false;
  check_reached(ncclGroupEnd());
}

std::optional<units::Seconds> NcclGroup::end_estimated() {
  is_open_ = false;
  double microseconds = -1;
  check(end_group_estimated(microseconds));
  if (microseconds < 0) return std::nullopt;
  return units::Seconds{microseconds * 1e-6};
}

ncclRedOp_t nccl_operation(program::Reduction reduction) {
  using enum program::Reduction;
  static_assert(sum == program::Reduction{0} && min == program::Reduction{1} &&
                max == program::Reduction{2});
  return std::array{ncclSum, ncclMin, ncclMax}.at(static_cast<std::size_t>(reduction));
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::reduce;
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
    case CollectiveKind::barrier:
      check(ncclAllReduce(d.send, d.receive, d.count, call.type, call.operation, communicator,
                          stream));
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
    case CollectiveKind::scatter:
    case CollectiveKind::all_to_all:
      throw std::logic_error("a collective that is made of messages");
  }
  group.end();
}

void require_possible(const CollectiveCall& call) {
  const CollectiveData& d = call.data;
  const std::uint64_t part = d.count * d.element, whole = part * d.members;
  const auto refuse_unless = [](bool possible, const char* what) {
    if (!possible) {
      throw base::Error(fmt::format(
          "NCCL cannot do {} in place in this way: use a separate receive buffer", what));
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

ExchangeCall messages_of(const CollectiveCall& call, const program::Collective& op) {
  using enum program::Direction;
  const CollectiveData& d = call.data;
  const auto root = static_cast<std::uint64_t>(call.root);
  ExchangeCall result;
  const auto add = [&](program::Direction direction, std::uint64_t peer, std::byte* data,
                       std::uint64_t count) {
    result.messages.push_back({.direction = direction,
                               .data = data,
                               .count = count,
                               .type = call.type,
                               .peer = static_cast<int>(peer),
                               .communicator = call.communicator});
  };
  if (op.kind == CollectiveKind::gather) add(send, root, d.send, d.count);
  if (op.kind == CollectiveKind::scatter) add(receive, root, d.receive, d.count);
  std::byte *from = d.send, *to = d.receive;
  for (std::uint64_t other = 0; other < d.members; ++other) {
    if (op.kind == CollectiveKind::all_to_all) {
      const bool even = op.send_counts.empty();
      const std::uint64_t sent = even ? d.count : op.send_counts[other];
      const std::uint64_t received = even ? d.count : op.receive_counts[other];
      add(send, other, from, sent);
      add(receive, other, to, received);
      from += sent * d.element;
      to += received * d.element;
    } else if (d.is_root && op.kind == CollectiveKind::gather) {
      add(receive, other, d.part(d.receive, other), d.count);
    } else if (d.is_root) {
      add(send, other, d.part(d.send, other), d.count);
    }
  }
  return result;
}

void launch(const ExchangeCall& call, cudaStream_t stream) {
  NcclGroup group;
  for (const Message& message : call.messages) {
    if (message.count == 0) continue;
    if (message.direction == program::Direction::send) {
      check_reached(ncclSend(message.data, message.count, message.type, message.peer,
                             message.communicator, stream));
    } else {
      check_reached(ncclRecv(message.data, message.count, message.type, message.peer,
                             message.communicator, stream));
    }
  }
  group.end();
}

}  // namespace isoscale::executor::cuda
