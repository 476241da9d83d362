// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/communication.hpp"

#include <fmt/format.h>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "executor/host/compute_ops.hpp"
#include "executor/host/player.hpp"
#include "units/text.hpp"

namespace isoscale::executor::host {
namespace {

/// Checks the result of a call on several messages; throws with the error of the message that
/// failed.
void check_all(int code, const std::vector<MPI_Status>& statuses) {
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses) {
      if (status.MPI_ERROR != MPI_ERR_PENDING) comm::check(status.MPI_ERROR);
    }
  }
  comm::check(code);
}

/// Throws TimedOut if an exchange takes too long. It reads the clock only at every 64th poll, so a
/// quick exchange never reads it.
class Patience {
 public:
  Patience(const ExchangeCall& call, const Player& player) : call_(call), player_(player) {}

  void lose() {
    if (player_.patience == units::Nanoseconds{} || ++looks_ % looks_between_clock_readings != 0) {
      return;
    }
    const units::Nanoseconds now = comm::now();
    if (begin_ == units::Nanoseconds{}) begin_ = now;
    if (now - begin_ > player_.patience) give_up();
  }

 private:
  static constexpr int looks_between_clock_readings = 64;

  [[noreturn]] void give_up() const {
    const Message& message = call_.receives.empty() ? call_.sends.front() : call_.receives.front();
    throw TimedOut(fmt::format(
        "an exchange of {} messages, the first with place {} of its group, did not end within {}",
        call_.receives.size() + call_.sends.size(), message.peer,
        units::format(units::to_seconds(player_.patience))));
  }

  const ExchangeCall& call_;
  const Player& player_;
  int looks_ = 0;
  units::Nanoseconds begin_{};
};

using program::CollectiveKind;

/// Makes the blocking call if `r` is null, else begins the non-blocking one.
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
  Patience patience{call, player};
  // MPI_Waitall is not used: with several threads, MPI_Waitall of Open MPI 4.1 does not return when
  // a message fails.
  climb(player.waiting, player.stopped, [&] {
    int done = 0;
    check_all(
        MPI_Testall(static_cast<int>(count), player.requests.data(), &done, player.statuses.data()),
        player.statuses);
    if (done == 0) patience.lose();
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
