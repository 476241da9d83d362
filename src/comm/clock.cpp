// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "comm/clock.hpp"

#include <filesystem>
#include <fstream>
#include <limits>

namespace isoscale::comm {
namespace {

constexpr int clock_tag = 2;

/// Rank 0's half: answers each request of `rank` with the time it was seen at.
void answer(const Communicator& communicator, int rank, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    check(MPI_Recv(nullptr, 0, MPI_BYTE, rank, clock_tag, communicator.get(), MPI_STATUS_IGNORE));
    const std::int64_t time = now().value();
    check(MPI_Send(&time, 1, MPI_INT64_T, rank, clock_tag, communicator.get()));
  }
}

/// The other half. Rank 0 read its clock somewhere within the round trip, so the middle of the
/// trip is off by half of it at most; the shortest trip bounds best.
ClockOffset ask(const Communicator& communicator, int rounds) {
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  ClockOffset best;
  for (int round = 0; round < rounds; ++round) {
    std::int64_t theirs = 0;
    const std::int64_t sent = now().value();
    check(MPI_Send(nullptr, 0, MPI_BYTE, 0, clock_tag, communicator.get()));
    check(MPI_Recv(&theirs, 1, MPI_INT64_T, 0, clock_tag, communicator.get(), MPI_STATUS_IGNORE));
    const std::int64_t trip = now().value() - sent;
    if (trip >= shortest) continue;
    shortest = trip;
    best.offset = units::Nanoseconds{sent + trip / 2 - theirs};
    best.error = units::Nanoseconds{(trip + 1) / 2};
  }
  return best;
}

}  // namespace

std::string clock_identity() {
  std::string boot;
  std::getline(std::ifstream{"/proc/sys/kernel/random/boot_id"}, boot);
  if (boot.empty()) return {};
  std::error_code failure;  // kernels before 5.6 have no time namespaces: one clock for all
  const auto space = std::filesystem::read_symlink("/proc/self/ns/time", failure);
  return boot + " " + (failure ? std::string{} : space.string());
}

ClockOffset offset_by_round_trips(const Communicator& communicator, ClockSource source,
                                  int rounds) {
  const auto sources = communicator.all_gather(static_cast<std::int64_t>(source));
  const auto is_measured = [&](int rank) {
    return sources[static_cast<std::size_t>(rank)] ==
           static_cast<std::int64_t>(ClockSource::measured);
  };
  if (communicator.rank() != 0) {
    return is_measured(communicator.rank()) ? ask(communicator, rounds) : ClockOffset{};
  }
  // One rank at a time; those that wait see a long first trip, which loses to the later ones.
  for (int rank = 1; rank < communicator.size(); ++rank) {
    if (is_measured(rank)) answer(communicator, rank, rounds);
  }
  return {};
}

ClockOffset measure_clock_offset(const Communicator& communicator, int rounds) {
  const std::string mine = clock_identity();
  const std::string of_rank_0 = communicator.broadcast(mine);
  const bool shared = !mine.empty() && mine == of_rank_0;
  return offset_by_round_trips(communicator, shared ? ClockSource::shared : ClockSource::measured,
                               rounds);
}

}  // namespace isoscale::comm
