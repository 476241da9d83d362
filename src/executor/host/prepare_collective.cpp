// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "executor/host/prepare_ops.hpp"

namespace isoscale::executor::host {
namespace {

using program::CollectiveKind;
using program::DType;

/// Makes the calls of one collective. Whether a call is too large for MPI is decided by numbers
/// that all members share: they must all make the same calls.
class CollectivePreparer {
 public:
  CollectivePreparer(const Resolver& resolver, const program::Collective& op, MPI_Comm communicator,
                     std::uint64_t limit)
      : op_(op),
        members_(static_cast<std::uint64_t>(mesh::group_size(resolver.mesh(), op.axes))),
        me_(mesh::group_index(resolver.mesh(), resolver.rank(), op.axes)),
        limit_(limit),
        send_(resolver.address_or_null(op.send)),
        receive_(resolver.address_or_null(op.receive)) {
    base_.kind = op.kind;
    base_.communicator = communicator;
    base_.root = op.root;
    if (op.kind == CollectiveKind::barrier) return;
    if (send_ == nullptr && receive_ == nullptr) throw base::Error("a collective without data");
    const program::Slice& some = send_ != nullptr ? op.send : op.receive;
    if (send_ != nullptr && receive_ != nullptr &&
        resolver.dtype(op.send) != resolver.dtype(op.receive)) {
      throw base::Error("what is sent and what is received differ in type");
    }
    type_ = resolver.dtype(some);
    size_ = program::element_size(type_);
    base_.type = mpi_type(type_);
    if (op.root < 0 || static_cast<std::uint64_t>(op.root) >= members_) {
      throw base::Error(fmt::format("root {} of a group of {}", op.root, members_));
    }
  }

  CollectiveCall make() {
    switch (op_.kind) {
      case CollectiveKind::all_reduce:
        all_reduce();
        break;
      case CollectiveKind::reduce_scatter:
        reduce_scatter();
        break;
      case CollectiveKind::all_gather:
        all_gather();
        break;
      case CollectiveKind::broadcast:
        broadcast();
        break;
      case CollectiveKind::reduce:
        reduce();
        break;
      case CollectiveKind::gather:
        gather();
        break;
      case CollectiveKind::scatter:
        scatter();
        break;
      case CollectiveKind::all_to_all:
        all_to_all();
        break;
      case CollectiveKind::barrier:
        result_.calls.push_back(base_);
        break;
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_root() const { return me_ == op_.root; }
  [[nodiscard]] std::uint64_t mine() const { return static_cast<std::uint64_t>(me_); }

  void require(const program::Slice& slice, std::uint64_t count, const char* what) const {
    if (slice.buffer != program::no_buffer && slice.count == count) return;
    throw base::Error(fmt::format("{} has {} elements in a group of {}; it should have {}", what,
                                  slice.count, members_, count));
  }

  [[nodiscard]] CopyCall plain_copy(const std::byte* from, std::byte* to,
                                    std::uint64_t count) const {
    return {.src = from, .dst = to, .row_bytes = count * size_, .rows = 1, .batch = 1};
  }

  /// A call per `limit_` elements; a null address stays null.
  void add_calls(MpiCall call, const std::byte* from, std::byte* to, std::uint64_t count) {
    const bool in_place = from != nullptr && from == to;
    for (std::uint64_t first = 0; first < count; first += limit_) {
      call.count = static_cast<int>(std::min(limit_, count - first));
      call.send = in_place ? MPI_IN_PLACE : from == nullptr ? nullptr : from + first * size_;
      call.receive = to == nullptr ? nullptr : to + first * size_;
      result_.calls.push_back(call);
    }
  }

  void all_reduce() {
    require(op_.send, op_.receive.count, "what is sent");
    base_.operation = mpi_operation(op_.reduction, type_);
    add_calls(base_, send_, receive_, op_.send.count);
  }

  void reduce() {
    require(op_.send, op_.receive.count, "what is sent");
    base_.operation = mpi_operation(op_.reduction, type_);
    add_calls(base_, send_, is_root() ? receive_ : nullptr, op_.send.count);
  }

  void broadcast() {
    std::byte* const buffer = receive_ != nullptr ? receive_ : send_;
    const std::uint64_t count = receive_ != nullptr ? op_.receive.count : op_.send.count;
    if (is_root() && send_ != nullptr && send_ != buffer) {
      require(op_.send, count, "what is sent");
      result_.before = plain_copy(send_, buffer, count);
    }
    add_calls(base_, nullptr, buffer, count);
  }

  void reduce_scatter() {
    const std::uint64_t part = op_.receive.count;
    require(op_.send, part * members_, "what is sent");
    base_.operation = mpi_operation(op_.reduction, type_);
    if (part * members_ > limit_) {
      // MPI's counts are int: one reduction per part instead.
      base_.kind = CollectiveKind::reduce;
      for (std::uint64_t root = 0; root < members_; ++root) {
        base_.root = static_cast<int>(root);
        add_calls(base_, send_ + root * part * size_, root == mine() ? receive_ : nullptr, part);
      }
      return;
    }
    base_.count = static_cast<int>(part);
    base_.send = send_;
    base_.receive = receive_;
    const bool overlaps =
        receive_ + part * size_ > send_ && receive_ < send_ + part * members_ * size_;
    if (overlaps) {
      // MPI would leave the result at the front of what is sent, which it also overwrites.
      result_.scratch.resize(part * size_);
      base_.receive = result_.scratch.data();
      result_.after = plain_copy(result_.scratch.data(), receive_, part);
    }
    result_.calls.push_back(base_);
  }

  void all_gather() {
    const std::uint64_t part = op_.send.count;
    require(op_.receive, part * members_, "what is received");
    std::byte* const own = receive_ + mine() * part * size_;
    if (part * members_ > limit_) {
      if (send_ != own) result_.before = plain_copy(send_, own, part);
      for_each_other([&](std::uint64_t other) {
        add_send(other, send_, part);
        add_receive(other, receive_ + other * part * size_, part);
      });
      return;
    }
    base_.count = static_cast<int>(part);
    base_.send = send_ == own ? MPI_IN_PLACE : send_;
    base_.receive = receive_;
    result_.calls.push_back(base_);
  }

  void gather() {
    const std::uint64_t part = op_.send.count;
    if (is_root()) require(op_.receive, part * members_, "what is received");
    std::byte* const own = is_root() ? receive_ + mine() * part * size_ : nullptr;
    if (part * members_ > limit_) {
      if (!is_root()) return add_send(static_cast<std::uint64_t>(op_.root), send_, part);
      if (send_ != own) result_.before = plain_copy(send_, own, part);
      return for_each_other(
          [&](std::uint64_t other) { add_receive(other, receive_ + other * part * size_, part); });
    }
    base_.count = static_cast<int>(part);
    base_.send = is_root() && send_ == own ? MPI_IN_PLACE : send_;
    base_.receive = is_root() ? receive_ : nullptr;
    result_.calls.push_back(base_);
  }

  void scatter() {
    const std::uint64_t part = op_.receive.count;
    if (is_root()) require(op_.send, part * members_, "what is sent");
    std::byte* const own = is_root() ? send_ + mine() * part * size_ : nullptr;
    if (part * members_ > limit_) {
      if (!is_root()) return add_receive(static_cast<std::uint64_t>(op_.root), receive_, part);
      if (receive_ != own) result_.before = plain_copy(own, receive_, part);
      return for_each_other(
          [&](std::uint64_t other) { add_send(other, send_ + other * part * size_, part); });
    }
    base_.count = static_cast<int>(part);
    base_.send = is_root() ? send_ : nullptr;
    base_.receive = is_root() && receive_ == own ? MPI_IN_PLACE : receive_;
    result_.calls.push_back(base_);
  }

  void all_to_all() {
    if (!op_.send_counts.empty() || !op_.receive_counts.empty()) {
      return all_to_all_messages(op_.send_counts, op_.receive_counts);
    }
    const std::uint64_t part = op_.send.count / members_;
    require(op_.send, part * members_, "what is sent");
    require(op_.receive, part * members_, "what is received");
    if (part * members_ > limit_) {
      const std::vector<std::uint64_t> even(members_, part);
      return all_to_all_messages(even, even);
    }
    base_.count = static_cast<int>(part);
    base_.send = send_ == receive_ ? MPI_IN_PLACE : send_;
    base_.receive = receive_;
    result_.calls.push_back(base_);
  }

  /// Uneven parts: no member knows whether another's are too large for MPI's counts, so all send
  /// messages, which is what MPI does inside too.
  void all_to_all_messages(const std::vector<std::uint64_t>& send_counts,
                           const std::vector<std::uint64_t>& receive_counts) {
    if (send_counts.size() != members_ || receive_counts.size() != members_) {
      throw base::Error(fmt::format("{} and {} counts for a group of {}", send_counts.size(),
                                    receive_counts.size(), members_));
    }
    const auto total = [](const auto& counts) {
      return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    };
    const std::uint64_t sent = total(send_counts), received = total(receive_counts);
    if (sent > 0) require(op_.send, sent, "what is sent");
    if (received > 0) require(op_.receive, received, "what is received");
    std::byte* from = send_;
    if (send_ != nullptr && send_ == receive_) {
      result_.scratch.resize(sent * size_);
      from = result_.scratch.data();
      result_.before = plain_copy(send_, from, sent);
    }
    std::byte* to = receive_;
    for (std::uint64_t other = 0; other < members_; ++other) {
      // Also to itself: a message then, since what is copied before may be the scratch.
      if (send_counts[other] > 0) add_send(other, from, send_counts[other]);
      if (receive_counts[other] > 0) add_receive(other, to, receive_counts[other]);
      from += send_counts[other] * size_;
      to += receive_counts[other] * size_;
    }
  }

  template <class Visit>
  void for_each_other(const Visit& visit) const {
    for (std::uint64_t other = 0; other < members_; ++other) {
      if (other != mine()) visit(other);
    }
  }

  void add_send(std::uint64_t to, std::byte* data, std::uint64_t count) {
    add_messages(result_.messages.sends, to, data, count);
  }
  void add_receive(std::uint64_t from, std::byte* data, std::uint64_t count) {
    add_messages(result_.messages.receives, from, data, count);
  }
  void add_messages(std::vector<Message>& messages, std::uint64_t peer, std::byte* data,
                    std::uint64_t count) const {
    const Message whole{.data = data,
                        .type = base_.type,
                        .peer = static_cast<int>(peer),
                        .communicator = base_.communicator};
    append_messages(messages, whole, count, size_, limit_);
  }

  const program::Collective& op_;
  std::uint64_t members_;
  int me_;
  std::uint64_t limit_;
  std::byte *send_, *receive_;
  DType type_ = DType::u8;
  std::size_t size_ = 1;
  MpiCall base_;
  CollectiveCall result_;
};

}  // namespace

Call prepare_op(const Resolver& resolver, const program::Collective& op, program::StreamId stream,
                const Communicators& communicators, std::uint64_t elements_per_call) {
  return CollectivePreparer{resolver, op, communicators.collective(op.axes, stream),
                            elements_per_call}
      .make();
}

}  // namespace isoscale::executor::host
