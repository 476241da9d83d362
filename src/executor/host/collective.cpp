// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/communicator.hpp"
#include "executor/host/calls.hpp"

namespace isoscale::executor::host {
namespace {

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
  climb(player.waiting, *player.stopped, [&] {
    int done = 0;
    comm::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
}

}  // namespace

void run(const CollectiveCall& call, Player& player) {
  if (call.before) run(*call.before);
  for (const MpiCall& part : call.calls) run(part, player);
  run(call.messages, player);
  if (call.after) run(*call.after);
}

}  // namespace isoscale::executor::host
