// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "executor/host/calls.hpp"
#include "executor/host/player.hpp"
#include "units/text.hpp"

namespace isoscale::executor::host {
namespace {

/// Like comm::check, but for a call on several messages: throws with the error of the message that
/// failed.
void check_all(int code, const std::vector<MPI_Status>& statuses) {
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses) {
      if (status.MPI_ERROR != MPI_ERR_PENDING) comm::check(status.MPI_ERROR);
    }
  }
  comm::check(code);
}

/// Throws TimedOut if an exchange takes too long. The clock is read only every 64th time, so a
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

int call_blocking(const MpiCall& c) {
  switch (c.kind) {
    case CollectiveKind::all_reduce:
      return MPI_Allreduce(c.send, c.receive, c.count, c.type, c.operation, c.communicator);
    case CollectiveKind::reduce_scatter:
      return MPI_Reduce_scatter_block(c.send, c.receive, c.count, c.type, c.operation,
                                      c.communicator);
    case CollectiveKind::all_gather:
      return MPI_Allgather(c.send, c.count, c.type, c.receive, c.count, c.type, c.communicator);
    case CollectiveKind::broadcast:
      return MPI_Bcast(c.receive, c.count, c.type, c.root, c.communicator);
    case CollectiveKind::reduce:
      return MPI_Reduce(c.send, c.receive, c.count, c.type, c.operation, c.root, c.communicator);
    case CollectiveKind::gather:
      return MPI_Gather(c.send, c.count, c.type, c.receive, c.count, c.type, c.root,
                        c.communicator);
    case CollectiveKind::scatter:
      return MPI_Scatter(c.send, c.count, c.type, c.receive, c.count, c.type, c.root,
                         c.communicator);
    case CollectiveKind::all_to_all:
      return MPI_Alltoall(c.send, c.count, c.type, c.receive, c.count, c.type, c.communicator);
    case CollectiveKind::barrier:
      return MPI_Barrier(c.communicator);
  }
  return MPI_ERR_UNKNOWN;
}

int begin(const MpiCall& c, MPI_Request* r) {
  switch (c.kind) {
    case CollectiveKind::all_reduce:
      return MPI_Iallreduce(c.send, c.receive, c.count, c.type, c.operation, c.communicator, r);
    case CollectiveKind::reduce_scatter:
      return MPI_Ireduce_scatter_block(c.send, c.receive, c.count, c.type, c.operation,
                                       c.communicator, r);
    case CollectiveKind::all_gather:
      return MPI_Iallgather(c.send, c.count, c.type, c.receive, c.count, c.type, c.communicator, r);
    case CollectiveKind::broadcast:
      return MPI_Ibcast(c.receive, c.count, c.type, c.root, c.communicator, r);
    case CollectiveKind::reduce:
      return MPI_Ireduce(c.send, c.receive, c.count, c.type, c.operation, c.root, c.communicator,
                         r);
    case CollectiveKind::gather:
      return MPI_Igather(c.send, c.count, c.type, c.receive, c.count, c.type, c.root,
                         c.communicator, r);
    case CollectiveKind::scatter:
      return MPI_Iscatter(c.send, c.count, c.type, c.receive, c.count, c.type, c.root,
                          c.communicator, r);
    case CollectiveKind::all_to_all:
      return MPI_Ialltoall(c.send, c.count, c.type, c.receive, c.count, c.type, c.communicator, r);
    case CollectiveKind::barrier:
      return MPI_Ibarrier(c.communicator, r);
  }
  return MPI_ERR_UNKNOWN;
}

void run(const MpiCall& call, const Player& player) {
  if (player.waiting == Waiting::blocking) {
    comm::check(call_blocking(call));
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  comm::check(begin(call, &request));
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
  // MPI_Waitall is not used: with several threads, that of Open MPI 4.1 does not return when a
  // message fails.
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
  for (const MpiCall& part : call.calls) run(part, player);
  run(call.messages, player);
  if (call.after) run(*call.after);
}

}  // namespace isoscale::executor::host
