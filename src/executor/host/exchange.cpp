// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/world.hpp"
#include "executor/host/calls.hpp"

namespace isoscale::executor::host {
namespace {

/// Like comm::check, and says what was wrong with the message itself.
void check_all(int code, const std::vector<MPI_Status>& statuses) {
  if (code == MPI_ERR_IN_STATUS) {
    for (const MPI_Status& status : statuses) {
      if (status.MPI_ERROR != MPI_ERR_PENDING) comm::check(status.MPI_ERROR);
    }
  }
  comm::check(code);
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
  // Never MPI_Waitall: with threads, that of Open MPI 4.1 does not return when a message fails.
  climb(player.waiting, *player.stopped, [&] {
    int done = 0;
    check_all(
        MPI_Testall(static_cast<int>(count), player.requests.data(), &done, player.statuses.data()),
        player.statuses);
    return done != 0;
  });
}

}  // namespace isoscale::executor::host
