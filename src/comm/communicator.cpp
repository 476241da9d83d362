// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>
#include <thread>

#include "comm/blocks.hpp"
#include "comm/calling.hpp"
#include "comm/check.hpp"
#include "comm/world.hpp"

namespace isoscale::comm {
namespace {

double all_reduce(MPI_Comm communicator, double value, MPI_Op operation) {
  check(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, operation, communicator));
  return value;
}

std::vector<int> translated(MPI_Comm from, const std::vector<int>& ranks, MPI_Comm to) {
  MPI_Group own = MPI_GROUP_NULL, theirs = MPI_GROUP_NULL;
  check(MPI_Comm_group(from, &own));
  check(MPI_Comm_group(to, &theirs));
  std::vector<int> result(ranks.size());
  check(MPI_Group_translate_ranks(own, static_cast<int>(ranks.size()), ranks.data(), theirs,
                                  result.data()));
  check(MPI_Group_free(&own));
  check(MPI_Group_free(&theirs));
  return result;
}

}  // namespace

void CommunicatorTraits::free(type communicator) noexcept {
  int finalized = 0;
  warn_unless_ok(MPI_Finalized(&finalized));
  // Freeing is collective. With an exception in flight peers may be elsewhere: leave it be.
  if (finalized != 0 || std::uncaught_exceptions() > 0) return;
  warn_unless_ok(MPI_Comm_free(&communicator));
}

Communicator::Communicator(MPI_Comm owned, std::shared_ptr<CallCount> calls)
    : handle_(owned), calls_(std::move(calls)) {
  if (!handle_) return;
  check(MPI_Comm_set_errhandler(owned, MPI_ERRORS_RETURN));
  check(MPI_Comm_rank(owned, &rank_));
  check(MPI_Comm_size(owned, &size_));
}

Communicator Communicator::world() {
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &made));
  return Communicator{made};
}

Communicator Communicator::split(int colour, int key) const {
  const Calling calling{calls_.get()};
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_split(get(), colour < 0 ? MPI_UNDEFINED : colour, key, &made));
  return Communicator{made, calls_};
}

Communicator Communicator::duplicate() const {
  const Calling calling{calls_.get()};
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_dup(get(), &made));
  return Communicator{made, calls_};
}

Communicator Communicator::split_node() const {
  const Calling calling{calls_.get()};
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_split_type(get(), MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &made));
  return Communicator{made, calls_};
}

std::vector<int> Communicator::ranks_in(const Communicator& other) const {
  std::vector<int> ours(static_cast<std::size_t>(size_));
  std::iota(ours.begin(), ours.end(), 0);
  return translated(get(), ours, other.get());
}

std::vector<int> Communicator::world_ranks(const std::vector<int>& members) const {
  return translated(get(), members, MPI_COMM_WORLD);
}

void Communicator::abandon() noexcept { static_cast<void>(handle_.release()); }

void Communicator::barrier() const {
  const Calling calling{calls_.get()};
  check(MPI_Barrier(get()));
}

void Communicator::quiet_barrier(units::Seconds pause) const {
  const Calling calling{calls_.get()};
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(get(), &request));
  while (true) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    std::this_thread::sleep_for(std::chrono::duration<double>{pause.value()});
  }
}

void Communicator::broadcast(std::span<std::byte> data, int root) const {
  const Calling calling{calls_.get()};
  for (const auto block : blocks(data)) {
    check(MPI_Bcast(block.data(), static_cast<int>(block.size()), MPI_BYTE, root, get()));
  }
}

std::string Communicator::broadcast(std::string text, int root) const {
  text.resize(static_cast<std::size_t>(broadcast(static_cast<std::int64_t>(text.size()), root)));
  broadcast(std::as_writable_bytes(std::span{text}), root);
  return text;
}

std::int64_t Communicator::broadcast(std::int64_t value, int root) const {
  const Calling calling{calls_.get()};
  check(MPI_Bcast(&value, 1, MPI_INT64_T, root, get()));
  return value;
}

double Communicator::all_max(double value) const {
  const Calling calling{calls_.get()};
  return all_reduce(get(), value, MPI_MAX);
}
double Communicator::all_min(double value) const {
  const Calling calling{calls_.get()};
  return all_reduce(get(), value, MPI_MIN);
}
double Communicator::all_sum(double value) const {
  const Calling calling{calls_.get()};
  return all_reduce(get(), value, MPI_SUM);
}

void Communicator::all_max(std::span<double> values) const {
  const Calling calling{calls_.get()};
  for (const auto block : blocks(values)) {
    check(MPI_Allreduce(MPI_IN_PLACE, block.data(), static_cast<int>(block.size()), MPI_DOUBLE,
                        MPI_MAX, get()));
  }
}

std::vector<std::int64_t> Communicator::all_gather(std::int64_t value) const {
  const Calling calling{calls_.get()};
  std::vector<std::int64_t> values(static_cast<std::size_t>(size_));
  check(MPI_Allgather(&value, 1, MPI_INT64_T, values.data(), 1, MPI_INT64_T, get()));
  return values;
}

}  // namespace isoscale::comm
