// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "comm/communicator.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>

namespace isoscale::comm {
namespace {

/// Counts a collective call as begun when constructed and as ended when destroyed.
class Calling {
 public:
  explicit Calling(CallCount* calls) : calls_(calls) {
    if (calls_ != nullptr) calls_->begun.fetch_add(1, std::memory_order_relaxed);
  }
  ~Calling() {
    if (calls_ != nullptr) calls_->ended.fetch_add(1, std::memory_order_relaxed);
  }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  CallCount* calls_;
};

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

constexpr int gather_tag = 1;

void send(MPI_Comm communicator, std::span<const std::byte> data, int to) {
  for (const auto block : blocks(data)) {
    // The send is synchronous: at most one block per rank is under way, so the receiver's memory
    // stays bounded.
    check(MPI_Ssend(block.data(), static_cast<int>(block.size()), MPI_BYTE, to, gather_tag,
                    communicator));
  }
}

/// Receives what another rank sends by send(); `data` must have the size of what it sends.
void receive(MPI_Comm communicator, std::span<std::byte> data, int from) {
  for (const auto block : blocks(data)) {
    check(MPI_Recv(block.data(), static_cast<int>(block.size()), MPI_BYTE, from, gather_tag,
                   communicator, MPI_STATUS_IGNORE));
  }
}

/// Returns a text with its size before it, so that several texts can follow each other.
std::string record_of(std::string_view text) {
  const std::uint64_t size = text.size();
  std::string record(sizeof size, '\0');
  std::memcpy(record.data(), &size, sizeof size);
  return record.append(text);
}

std::vector<std::string> texts_of(std::string_view records) {
  std::vector<std::string> texts;
  while (!records.empty()) {
    std::uint64_t size = 0;
    std::memcpy(&size, records.data(), sizeof size);
    texts.emplace_back(records.substr(sizeof size, size));
    records.remove_prefix(sizeof size + size);
  }
  return texts;
}

/// True if the reason begins with "rank N: ", as the reasons that all_ok() returns do.
bool names_rank(std::string_view reason) {
  constexpr std::string_view before{"rank "}, digits{"0123456789"};
  if (!reason.starts_with(before)) return false;
  reason.remove_prefix(before.size());
  const std::size_t end = reason.find_first_not_of(digits);
  return end != 0 && end != reason.npos && reason.substr(end).starts_with(": ");
}

}  // namespace

void CommunicatorTraits::free(type communicator) noexcept {
  int finalized = 0;
  warn_unless_ok(MPI_Finalized(&finalized));
  // MPI_Comm_free is collective. While an exception is in flight, peers may not call it, so the
  // communicator is not freed.
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
  text.resize(broadcast(text.size(), root));
  broadcast(std::as_writable_bytes(std::span{text}), root);
  return text;
}

double Communicator::all_reduce(double value, MPI_Op operation) const {
  const Calling calling{calls_.get()};
  check(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, operation, get()));
  return value;
}

void Communicator::all_max(std::span<double> values) const {
  const Calling calling{calls_.get()};
  for (const auto block : blocks(values)) {
    check(MPI_Allreduce(MPI_IN_PLACE, block.data(), static_cast<int>(block.size()), MPI_DOUBLE,
                        MPI_MAX, get()));
  }
}

void Communicator::all_gather(std::span<const std::byte> mine, void* all) const {
  const Calling calling{calls_.get()};
  const auto count = static_cast<int>(mine.size());
  check(MPI_Allgather(mine.data(), count, MPI_BYTE, all, count, MPI_BYTE, get()));
}

std::vector<std::vector<std::byte>> Communicator::gather(std::span<const std::byte> part) const {
  const Calling calling{calls_.get()};
  const std::uint64_t mine = part.size();
  std::vector<std::uint64_t> sizes(rank_ == 0 ? static_cast<std::size_t>(size_) : 0);
  check(MPI_Gather(&mine, 1, MPI_UINT64_T, sizes.data(), 1, MPI_UINT64_T, 0, get()));
  if (rank_ != 0) {
    send(get(), part, 0);
    return {};
  }
  std::vector<std::vector<std::byte>> parts;
  parts.emplace_back(part.begin(), part.end());
  for (int from = 1; from < size_; ++from) {
    receive(get(), parts.emplace_back(sizes[static_cast<std::size_t>(from)]), from);
  }
  return parts;
}

/// Returns the texts of all ranks on rank 0 as one text, in which each has the form of record_of();
/// returns "" on other ranks.
std::string Communicator::gather_records(std::string_view text) const {
  const Calling calling{calls_.get()};
  // This is a binomial tree. In round k, each rank that is an odd multiple of 2^k sends the texts
  // of up to 2^k ranks, its own and the following ones, to the rank that is 2^k lower.
  std::string held = record_of(text);
  for (int distance = 1; distance < size_; distance *= 2) {
    if (rank_ % (2 * distance) != 0) {
      const std::uint64_t size = held.size();
      check(MPI_Send(&size, 1, MPI_UINT64_T, rank_ - distance, gather_tag, get()));
      send(get(), std::as_bytes(std::span{held}), rank_ - distance);
      return {};
    }
    const int from = rank_ + distance;
    if (from >= size_) continue;
    std::uint64_t size = 0;
    check(MPI_Recv(&size, 1, MPI_UINT64_T, from, gather_tag, get(), MPI_STATUS_IGNORE));
    const std::size_t before = held.size();
    held.resize(before + size);
    receive(get(), std::as_writable_bytes(std::span{held}).subspan(before), from);
  }
  return held;
}

std::vector<std::string> Communicator::gather(std::string_view text) const {
  return texts_of(gather_records(text));
}

std::vector<std::string> Communicator::all_gather(std::string_view text) const {
  return texts_of(broadcast(gather_records(text)));
}

Vote all_ok(const Communicator& communicator, std::string_view problem) {
  // The lowest rank with a problem gives the reason; the value size() means that no rank has one.
  const int own = problem.empty() ? communicator.size() : communicator.rank();
  const int speaker = static_cast<int>(communicator.all_min(own));
  if (speaker == communicator.size()) return {};
  const std::string reason = communicator.broadcast(std::string{problem}, speaker);
  // The reason may be that of an earlier vote; it then names a rank already.
  if (names_rank(reason)) return {.ok = false, .why = reason};
  return {.ok = false, .why = fmt::format("rank {}: {}", communicator.world_rank(speaker), reason)};
}

std::vector<int> node_of_rank(const Communicator& communicator) {
  // split_node() keeps the order of ranks, so the first rank of each node is its lowest, which
  // identifies the node.
  const int leader = communicator.split_node().broadcast(communicator.rank());
  std::map<int, int> number;
  std::vector<int> nodes;
  for (const int first : communicator.all_gather(leader)) {
    nodes.push_back(number.try_emplace(first, static_cast<int>(number.size())).first->second);
  }
  return nodes;
}

}  // namespace isoscale::comm
