// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <stdexcept>

#include "executor/host/communication.hpp"
#include "executor/host/host_executor.hpp"

namespace isoscale::executor::host {
namespace {

using program::Collective;
using program::CollectiveKind;

/// True if MPI crashes when this collective uses MPI_IN_PLACE. MPICH 4.0 crashes in MPI_Reduce if
/// the root is not rank 0, since it reads memory at the address MPI_IN_PLACE.
bool crashes_in_place(CollectiveKind kind, std::int32_t root) {
  return kind == CollectiveKind::reduce && root != 0 &&
         comm::Environment::library_version().starts_with("MPICH Version: 4.0");
}

bool overlap(const program::Slice& a, const program::Slice& b, const mesh::Shape& mesh) {
  const program::Access first = access(a, mesh, program::Mode::read);
  const program::Access second = access(b, mesh, program::Mode::read);
  return first.buffer == second.buffer && first.begin < second.end && second.begin < first.end;
}

/// Returns the number of elements of staging memory that a collective needs, which is 0 if it sends
/// and receives in different buffers. `limit` is the most elements in one MPI call.
std::uint64_t staged(const Collective& op, const mesh::Shape& mesh, std::uint64_t limit) {
  if (op.send.buffer != op.receive.buffer) return 0;
  switch (op.kind) {
    case CollectiveKind::reduce_scatter:
      return overlap(op.send, op.receive, mesh) ? op.receive.count : 0;
    case CollectiveKind::reduce:
      return crashes_in_place(op.kind, op.root) ? op.send.count : 0;
    case CollectiveKind::all_to_all: {
      const bool uneven = !op.send_counts.empty() || !op.receive_counts.empty();
      return uneven || op.send.count > limit ? op.send.count : 0;
    }
    default:
      return 0;
  }
}

/// Prepares the MPI calls of one collective. All members of the group must make the same calls. So
/// only numbers that are the same on all members may decide whether the data is too large for one
/// call.
class CollectivePreparer {
 public:
  CollectivePreparer(const Resolver& resolver, const program::Collective& op, MPI_Comm communicator,
                     std::uint64_t limit, std::span<std::byte> staging, OwnReductions& own)
      : op_(op), data_(resolve(resolver, op)), limit_(limit), staging_(staging), own_(own) {
    base_.kind = op.kind;
    base_.communicator = communicator;
    base_.root = op.root;
    if (op.kind != CollectiveKind::barrier) base_.type = mpi_type(data_.type);
  }

  CollectiveCall make() {
    switch (op_.kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce:
        reduce();
        break;
      case CollectiveKind::reduce_scatter:
        reduce_scatter();
        break;
      case CollectiveKind::all_gather:
      case CollectiveKind::gather:
      case CollectiveKind::scatter:
        move_parts();
        break;
      case CollectiveKind::broadcast:
        broadcast();
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
  [[nodiscard]] StridedCopy plain_copy(const std::byte* from, std::byte* to,
                                       std::uint64_t count) const {
    return {.src = from, .dst = to, .row_bytes = count * data_.element, .rows = 1, .batch = 1};
  }

  /// Returns the stream's staging memory. Throws if `count` elements do not fit into it.
  [[nodiscard]] std::byte* staging(std::uint64_t count) const {
    if (count * data_.element > staging_.size()) {
      throw std::logic_error("a collective copies more aside than staging_bytes says");
    }
    return staging_.data();
  }

  /// Adds calls that together handle `count` elements, at most `limit_` elements each. If `from` or
  /// `to` is null, it is null in each of the calls. If both are the same address, the calls use
  /// MPI_IN_PLACE or, where this would crash MPI, send from a copy of the data.
  void add_calls(MpiCall call, const std::byte* from, std::byte* to, std::uint64_t count) {
    if (from != nullptr && from == to && crashes_in_place(base_.kind, base_.root)) {
      std::byte* const aside = staging(count);
      result_.before = plain_copy(from, aside, count);
      from = aside;
    }
    const bool in_place = from != nullptr && from == to;
    for (std::uint64_t first = 0; first < count; first += limit_) {
      call.count = static_cast<int>(std::min(limit_, count - first));
      call.send = in_place          ? MPI_IN_PLACE
                  : from == nullptr ? nullptr
                                    : from + first * data_.element;
      call.receive = to == nullptr ? nullptr : to + first * data_.element;
      result_.calls.push_back(call);
    }
  }

  void reduce() {
    const bool receives = op_.kind == CollectiveKind::all_reduce || data_.is_root;
    base_.operation = mpi_operation(op_.reduction, data_.type, own_);
    add_calls(base_, data_.send, receives ? data_.receive : nullptr, data_.count);
  }

  void broadcast() {
    std::byte* const buffer = data_.receive != nullptr ? data_.receive : data_.send;
    const std::uint64_t count = data_.count;
    if (data_.is_root && data_.send != nullptr && data_.send != buffer) {
      result_.before = plain_copy(data_.send, buffer, count);
    }
    add_calls(base_, nullptr, buffer, count);
  }

  void reduce_scatter() {
    const std::uint64_t part = data_.count;
    base_.operation = mpi_operation(op_.reduction, data_.type, own_);
    if (part * data_.members > limit_) {
      // The whole data is too large for one MPI call, so the reduce_scatter is replaced by one
      // reduction for each member.
      base_.kind = CollectiveKind::reduce;
      for (std::uint64_t root = 0; root < data_.members; ++root) {
        base_.root = static_cast<int>(root);
        add_calls(base_, data_.part(data_.send, root), root == data_.me ? data_.receive : nullptr,
                  part);
      }
      return;
    }
    const bool overlaps = data_.receive + part * data_.element > data_.send &&
                          data_.receive < data_.part(data_.send, data_.members);
    std::byte* to = data_.receive;
    if (overlaps) {
      // With MPI_IN_PLACE, MPI would store the result at the beginning of the send buffer and
      // overwrite the rest of that buffer. So the result goes to staging memory first.
      to = staging(part);
      result_.after = plain_copy(to, data_.receive, part);
    }
    base_.count = static_cast<int>(part);
    base_.send = data_.send;
    base_.receive = to;
    result_.calls.push_back(base_);
  }

  /// Prepares a gather, an all_gather, a scatter, or an all_to_all with equal parts. The result is
  /// one MPI call or, if the data is too large for one call, a message for each part that goes to
  /// or comes from another rank. all_to_all() calls this function only if one call is enough.
  void move_parts() {
    const std::uint64_t part = data_.count;
    const bool scatters = op_.kind == CollectiveKind::scatter;
    const bool gathers = op_.kind == CollectiveKind::gather;
    const bool sends = !scatters || data_.is_root, receives = !gathers || data_.is_root;
    const auto from = [&](std::uint64_t other) {
      const bool is_whole = gathers || op_.kind == CollectiveKind::all_gather;
      return is_whole ? data_.send : data_.part(data_.send, other);
    };
    const auto to = [&](std::uint64_t other) {
      return scatters ? data_.receive : data_.part(data_.receive, other);
    };
    const bool has_own = sends && receives, in_place = has_own && from(data_.me) == to(data_.me);
    if (part * data_.members <= limit_) {
      base_.count = static_cast<int>(part);
      base_.send = in_place && !scatters ? MPI_IN_PLACE : sends ? data_.send : nullptr;
      base_.receive = in_place && scatters ? MPI_IN_PLACE : receives ? data_.receive : nullptr;
      result_.calls.push_back(base_);
      return;
    }
    if (has_own && !in_place) result_.before = plain_copy(from(data_.me), to(data_.me), part);
    for (std::uint64_t other = 0; other < data_.members; ++other) {
      if (other == data_.me) continue;
      const bool is_root = other == static_cast<std::uint64_t>(op_.root);
      if (sends && (!gathers || is_root)) add(result_.messages.sends, other, from(other), part);
      if (receives && (!scatters || is_root))
        add(result_.messages.receives, other, to(other), part);
    }
  }

  /// Sends the parts of an all_to_all as messages if the parts are unequal or too large for one
  /// call. MPI_Alltoallv is not used, since its counts are ints. A member does not know the sizes
  /// of unequal parts on other members, so the members could not agree when all of them fit into
  /// ints. MPI_Alltoallv would gain nothing, since it sends messages, too.
  void all_to_all() {
    const bool is_even = op_.send_counts.empty() && op_.receive_counts.empty();
    if (is_even && data_.count * data_.members <= limit_) return move_parts();
    const std::vector<std::uint64_t> even(data_.members, data_.count);
    const std::vector<std::uint64_t>& send_counts = is_even ? even : op_.send_counts;
    const std::vector<std::uint64_t>& receive_counts = is_even ? even : op_.receive_counts;
    std::byte* from = data_.send;
    if (data_.send != nullptr && data_.send == data_.receive) {
      from = staging(data_.sent);
      result_.before = plain_copy(data_.send, from, data_.sent);
    }
    std::byte* to = data_.receive;
    ExchangeCall& messages = result_.messages;
    for (std::uint64_t other = 0; other < data_.members; ++other) {
      // The part that this rank sends to itself is a message, too, since `before` holds only one
      // copy, which may already be in use to fill the staging memory.
      if (send_counts[other] > 0) add(messages.sends, other, from, send_counts[other]);
      if (receive_counts[other] > 0) add(messages.receives, other, to, receive_counts[other]);
      from += send_counts[other] * data_.element;
      to += receive_counts[other] * data_.element;
    }
  }

  void add(std::vector<Message>& messages, std::uint64_t peer, std::byte* data,
           std::uint64_t count) const {
    const Message whole{.data = data,
                        .type = base_.type,
                        .peer = static_cast<int>(peer),
                        .communicator = base_.communicator};
    append_messages(messages, whole, count, data_.element, limit_);
  }

  const program::Collective& op_;
  CollectiveData data_;
  std::uint64_t limit_;
  std::span<std::byte> staging_;
  OwnReductions& own_;
  MpiCall base_;
  CollectiveCall result_;
};

}  // namespace

std::array<units::Bytes, program::max_streams> staging_bytes(const program::RankProgram& program,
                                                             const mesh::Shape& mesh,
                                                             std::uint64_t elements_per_call) {
  std::array<units::Bytes, program::max_streams> bytes{};
  for_each_op<Collective>(program, [&](const program::Op& op, const Collective& collective) {
    if (collective.kind == CollectiveKind::barrier) return;
    const std::uint64_t elements = staged(collective, mesh, elements_per_call);
    if (elements == 0) return;
    const auto& buffer = program.buffers[collective.send.buffer];
    bytes[op.stream] =
        std::max(bytes[op.stream], units::Bytes{elements * program::element_size(buffer.dtype)});
  });
  return bytes;
}

void append_messages(std::vector<Message>& messages, Message whole, std::uint64_t count,
                     std::size_t element_size, std::uint64_t elements_per_call) {
  std::uint64_t first = 0;
  do {
    Message part = whole;
    part.count = static_cast<int>(std::min(elements_per_call, count - first));
    part.data = whole.data + first * element_size;
    messages.push_back(part);
    first += elements_per_call;
  } while (first < count);
}

CollectiveCall collective_call(const Resolver& resolver, const program::Collective& op,
                               program::StreamId stream, const Communicators& communicators,
                               std::uint64_t elements_per_call, std::span<std::byte> staging,
                               OwnReductions& own) {
  return CollectivePreparer{resolver,          op,      communicators.collective(op.axes, stream),
                            elements_per_call, staging, own}
      .make();
}

}  // namespace isoscale::executor::host
