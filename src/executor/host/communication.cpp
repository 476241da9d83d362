// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/communication.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>

#include "executor/host/compute_ops.hpp"
#include "executor/host/stream_threads.hpp"
#include "program/low_precision.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::executor::host {
namespace {

using program::DType;
using program::Reduction;

constexpr std::uint64_t tag_values = 32768;

comm::Communicator split(const comm::Communicator& point, const mesh::Shape& mesh,
                         mesh::AxisSet axes) {
  return point.split(mesh::group_colour(mesh, point.rank(), axes),
                     mesh::group_index(mesh, point.rank(), axes));
}

template <Reduction reduction, class T>
T combine(T a, T b) {
  if constexpr (reduction == Reduction::sum) {
    return static_cast<T>(a + b);
  } else if constexpr (reduction == Reduction::min) {
    return std::min(a, b);
  } else {
    return std::max(a, b);
  }
}

/// A user-defined MPI reduction for f16 or bf16. Combines each element of `from` with that of
/// `into` (sum, minimum or maximum, computed in f32), and stores the rounded result in `into`.
template <Reduction reduction, DType type>
void reduce(void* from, void* into, int* count, MPI_Datatype* /*type*/) {
  constexpr program::NarrowFormat format = *program::narrow_format(type);
  const auto* const a = static_cast<const std::uint16_t*>(from);
  auto* const b = static_cast<std::uint16_t*>(into);
  for (int i = 0; i < *count; ++i) {
    const float sum = combine<reduction>(decode(format, a[i]), decode(format, b[i]));
    b[i] = encode(format, static_cast<double>(sum));
  }
}

/// Combines each byte of `from` with that of `into`, and stores the result in `into`. Sums are
/// modulo 256, for signed and unsigned bytes; minimum and maximum are for unsigned bytes.
template <Reduction reduction>
void reduce_bytes(void* from, void* into, int* count, MPI_Datatype* /*type*/) {
  const auto* const a = static_cast<const std::uint8_t*>(from);
  auto* const b = static_cast<std::uint8_t*>(into);
  for (int i = 0; i < *count; ++i) {
    b[i] = combine<reduction>(a[i], b[i]);
  }
}

MPI_User_function* function_of(Reduction reduction, DType type) {
  const auto choose = [reduction](MPI_User_function* sum, MPI_User_function* min,
                                  MPI_User_function* max) {
    static_assert(Reduction::sum == Reduction{0} && Reduction::min == Reduction{1} &&
                  Reduction::max == Reduction{2});
    return std::array{sum, min, max}.at(static_cast<std::size_t>(reduction));
  };
  using enum Reduction;
  if (type == DType::f16) {
    return choose(&reduce<sum, DType::f16>, &reduce<min, DType::f16>, &reduce<max, DType::f16>);
  }
  if (type == DType::bf16) {
    return choose(&reduce<sum, DType::bf16>, &reduce<min, DType::bf16>, &reduce<max, DType::bf16>);
  }
  return choose(&reduce_bytes<sum>, &reduce_bytes<min>, &reduce_bytes<max>);
}

/// Checks the result of an MPI call on several messages; throws the error of the first message that
/// failed.
void check_all(int code, const std::vector<MPI_Status>& statuses) {
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses) {
      if (status.MPI_ERROR != MPI_ERR_PENDING) comm::check(status.MPI_ERROR);
    }
  }
  comm::check(code);
}

[[noreturn]] void give_up(const ExchangeCall& call, units::Nanoseconds patience) {
  const Message& message = call.receives.empty() ? call.sends.front() : call.receives.front();
  throw TimedOut(fmt::format(
      "an exchange of {} messages, the first with place {} of its group, did not end within {}",
      call.receives.size() + call.sends.size(), message.peer,
      units::format(units::to_seconds(patience))));
}

using program::CollectiveKind;

/// Makes the MPI call of a collective: the blocking function if the request `r` is null, otherwise
/// the non-blocking one (MPI_I...), which stores its request in `r`.
int make(const MpiCall& c, MPI_Request* r) {
  const auto [kind, comm, type, op, root, count, send, receive] = c;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return r != nullptr ? MPI_Iallreduce(send, receive, count, type, op, comm, r)
                          : MPI_Allreduce(send, receive, count, type, op, comm);
    case CollectiveKind::reduce_scatter:
      return r != nullptr ? MPI_Ireduce_scatter_block(send, receive, count, type, op, comm, r)
                          : MPI_Reduce_scatter_block(send, receive, count, type, op, comm);
    case CollectiveKind::all_gather:
      return r != nullptr ? MPI_Iallgather(send, count, type, receive, count, type, comm, r)
                          : MPI_Allgather(send, count, type, receive, count, type, comm);
    case CollectiveKind::broadcast:
      return r != nullptr ? MPI_Ibcast(receive, count, type, root, comm, r)
                          : MPI_Bcast(receive, count, type, root, comm);
    case CollectiveKind::reduce:
      return r != nullptr ? MPI_Ireduce(send, receive, count, type, op, root, comm, r)
                          : MPI_Reduce(send, receive, count, type, op, root, comm);
    case CollectiveKind::gather:
      return r != nullptr ? MPI_Igather(send, count, type, receive, count, type, root, comm, r)
                          : MPI_Gather(send, count, type, receive, count, type, root, comm);
    case CollectiveKind::scatter:
      return r != nullptr ? MPI_Iscatter(send, count, type, receive, count, type, root, comm, r)
                          : MPI_Scatter(send, count, type, receive, count, type, root, comm);
    case CollectiveKind::all_to_all:
      return r != nullptr ? MPI_Ialltoall(send, count, type, receive, count, type, comm, r)
                          : MPI_Alltoall(send, count, type, receive, count, type, comm);
    case CollectiveKind::barrier:
      return r != nullptr ? MPI_Ibarrier(comm, r) : MPI_Barrier(comm);
  }
  return MPI_ERR_UNKNOWN;
}

void play_part(const MpiCall& call, const Player& player) {
  if (player.waiting == Waiting::blocking) {
    comm::check(make(call, nullptr));
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  comm::check(make(call, &request));
  climb(player.waiting, player.stopped, [&] {
    int done = 0;
    comm::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
}

}  // namespace

Communicators::Communicators(const CommunicationNeeds& needs, const mesh::Shape& mesh,
                             const comm::Communicator& point)
    : offsets_(needs.exchanges) {
  for (const auto& group : needs.collectives) {
    collectives_.emplace(group, split(point, mesh, group.first));
  }
  for (const auto& [axis, offsets] : offsets_) {
    exchanges_.emplace(axis, split(point, mesh, axis));
  }
}

int Communicators::tag(mesh::Axis axis, std::int32_t sender_offset, std::uint64_t sequence) const {
  const std::set<std::int32_t>& offsets = offsets_.at(axis);
  const auto link =
      static_cast<std::uint64_t>(std::distance(offsets.begin(), offsets.find(sender_offset)));
  const std::uint64_t window = tag_values / offsets.size();
  return static_cast<int>(link * window + sequence % window);
}

void Communicators::abandon() noexcept {
  for (auto& [group, communicator] : collectives_) communicator.abandon();
  for (auto& [axis, communicator] : exchanges_) communicator.abandon();
}

void OperationTraits::free(type operation) noexcept { static_cast<void>(MPI_Op_free(&operation)); }

MPI_Op OwnReductions::operation(Reduction reduction, DType type) {
  base::Handle<OperationTraits>& made = made_[{reduction, type}];
  if (!made) {
    constexpr int commutes = 1;
    MPI_Op operation = MPI_OP_NULL;
    comm::check(MPI_Op_create(function_of(reduction, type), commutes, &operation));
    made.reset(operation);
  }
  return made.get();
}

MPI_Op mpi_operation(program::Reduction reduction, DType type, OwnReductions& own) {
  const bool is_sum = reduction == program::Reduction::sum;
  const bool is_short_float = type == DType::f16 || type == DType::bf16;
  // The host does not compute in f16 and bf16, but it reduces them, since gradients may be
  // communicated in these types.
  if (type == DType::u8 || (type == DType::i8 && is_sum) || is_short_float) {
    return own.operation(reduction, type);
  }
  if (type == DType::e4m3 || type == DType::e5m2) {
    throw base::Error(fmt::format(
        "a reduction of {}: the host reduces f64, f32, f16, bf16 and integers only; ask for one of "
        "these, or for another device",
        program::name(type)));
  }
  return std::array{MPI_SUM, MPI_MIN, MPI_MAX}.at(static_cast<std::size_t>(reduction));
}

MPI_Datatype mpi_type(DType type) {
  // The table has the order of the enumerators of DType, the last of which is u8.
  static_assert(static_cast<std::size_t>(DType::u8) + 1 == 10);
  const std::array<MPI_Datatype, 10> types{MPI_DOUBLE,  MPI_FLOAT,   MPI_UINT16_T, MPI_UINT16_T,
                                           MPI_UINT8_T, MPI_UINT8_T, MPI_INT64_T,  MPI_INT32_T,
                                           MPI_INT8_T,  MPI_UINT8_T};
  return types.at(static_cast<std::size_t>(type));
}

void run(const ExchangeCall& call, Player& player) {
  const std::size_t count = call.receives.size() + call.sends.size();
  if (count == 0) return;
  player.requests.resize(count);
  player.statuses.resize(count);
  MPI_Request* request = player.requests.data();
  for (const Message& m : call.receives) {
    comm::check(MPI_Irecv(m.data, m.count, m.type, m.peer, m.tag, m.communicator, request++));
  }
  for (const Message& m : call.sends) {
    comm::check(MPI_Isend(m.data, m.count, m.type, m.peer, m.tag, m.communicator, request++));
  }
  units::Nanoseconds begin{};
  int looks = 0;
  // Only every 64th poll compares the clock with the time limit, so that the limit costs short
  // exchanges no time. The time limit starts with the first reading of the clock.
  const auto lose_patience = [&] {
    if (player.patience == units::Nanoseconds{} || ++looks % 64 != 0) return;
    const units::Nanoseconds now = comm::now();
    if (begin == units::Nanoseconds{}) begin = now;
    if (now - begin > player.patience) give_up(call, player.patience);
  };
  // MPI_Waitall is not used: with several threads, MPI_Waitall of Open MPI 4.1 does not return when
  // a message fails.
  climb(player.waiting, player.stopped, [&] {
    int done = 0;
    check_all(
        MPI_Testall(static_cast<int>(count), player.requests.data(), &done, player.statuses.data()),
        player.statuses);
    if (done == 0) lose_patience();
    return done != 0;
  });
}

void run(const CollectiveCall& call, Player& player) {
  if (call.before) run(*call.before);
  for (const MpiCall& part : call.calls) play_part(part, player);
  run(call.messages, player);
  if (call.after) run(*call.after);
}

}  // namespace isoscale::executor::host
