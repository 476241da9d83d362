// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/handle.hpp"
#include "comm/environment.hpp"
#include "mesh/mesh.hpp"
#include "units/quantity.hpp"

/// Communicators wrap those of MPI; ranks gather and agree over them.
namespace isoscale::comm {

struct CommunicatorTraits {
  using type = MPI_Comm;
  static type null() { return MPI_COMM_NULL; }
  static void free(type communicator) noexcept;
};

/// Another thread may read these counts of the collective calls that communicators make.
struct CallCount {
  std::atomic<std::uint64_t> begun{0}, ended{0};
  std::atomic<std::uint64_t> others{0};  ///< of other libraries among the same ranks, that ended
};

/// No single message of ours is larger, whatever is sent: MPI counts are int, and a receiver that
/// is behind must not have to hold more.
inline constexpr std::size_t block_bytes = std::size_t{64} << 20;

/// `data` cut into consecutive blocks of at most block_bytes; none when it is empty.
template <class T>
[[nodiscard]] std::vector<std::span<T>> blocks(std::span<T> data) {
  constexpr std::size_t most = block_bytes / sizeof(T);
  std::vector<std::span<T>> parts;
  for (std::size_t first = 0; first < data.size(); first += most) {
    parts.push_back(data.subspan(first, std::min(most, data.size() - first)));
  }
  return parts;
}

/// A communicator of ours, MPI_ERRORS_RETURN set; move-only. Collective calls must be made by all
/// of its ranks in the same order.
class Communicator {
 public:
  Communicator() = default;
  [[nodiscard]] static Communicator world();  ///< a duplicate of MPI_COMM_WORLD

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] MPI_Comm get() const { return handle_.get(); }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(handle_); }

  /// Ranks of one colour together, ordered by key; colour < 0: this rank gets an empty
  /// communicator.
  [[nodiscard]] Communicator split(int colour, int key) const;
  [[nodiscard]] Communicator duplicate() const;
  /// Ranks that share memory (one node).
  [[nodiscard]] Communicator split_node() const;
  /// Counts collective calls from now on, those of communicators made from this one too.
  void count_calls(std::shared_ptr<CallCount> calls) { calls_ = std::move(calls); }
  /// Counts what another library has brought to its end among these ranks.
  void count_other() const {
    if (calls_) calls_->others.fetch_add(1, std::memory_order_relaxed);
  }
  /// The ranks of this communicator as another one numbers them.
  [[nodiscard]] std::vector<int> ranks_in(const Communicator& other) const;
  /// The ranks in MPI_COMM_WORLD, which people are shown, of members of this communicator.
  [[nodiscard]] std::vector<int> world_ranks(const std::vector<int>& members) const;
  [[nodiscard]] int world_rank(int member) const { return world_ranks({member}).front(); }
  /// Forgets the communicator without freeing it: for one that peers may still be stuck in.
  void abandon() noexcept;

  void barrier() const;
  /// Waits for all ranks like barrier, asleep between looks (`pause` apart): no core or link is
  /// kept busy.
  void quiet_barrier(units::Seconds pause = units::Seconds{0.01}) const;
  void broadcast(std::span<std::byte> data, int root = 0) const;
  [[nodiscard]] std::string broadcast(std::string text, int root = 0) const;
  [[nodiscard]] std::int64_t broadcast(std::int64_t value, int root = 0) const;
  [[nodiscard]] double all_max(double value) const;
  [[nodiscard]] double all_min(double value) const;
  [[nodiscard]] double all_sum(double value) const;
  void all_max(std::span<double> values) const;  ///< element by element, in place
  /// Every rank's bytes at root, by rank; empty elsewhere. Sent in bounded blocks: no rank's part
  /// may exceed what memory holds, any part may exceed 2 GiB.
  [[nodiscard]] std::vector<std::vector<std::byte>> gather(std::span<const std::byte> part,
                                                           int root = 0) const;
  /// The same for small texts, along a tree: no rank takes part in more than a logarithm of their
  /// number of messages.
  [[nodiscard]] std::vector<std::string> gather(std::string_view text, int root = 0) const;
  [[nodiscard]] std::vector<std::int64_t> all_gather(std::int64_t value) const;

 private:
  explicit Communicator(MPI_Comm owned, std::shared_ptr<CallCount> calls = nullptr);

  base::Handle<CommunicatorTraits> handle_;
  std::shared_ptr<CallCount> calls_;  ///< none: calls are not counted
  int rank_ = 0;
  int size_ = 1;
};

/// The outcome of a vote: `ok` on every rank alike; `why` is the reason of the lowest rank that
/// said no, prefixed with its rank in MPI_COMM_WORLD, "" when all said yes.
struct Vote {
  bool ok = true;
  std::string why;
};
/// Collective. A rank that is content passes an empty `problem`.
[[nodiscard]] Vote all_ok(const Communicator& communicator, std::string_view problem);

/// Index of each rank's node, 0-based, in order of first appearance; collective, same on all ranks.
[[nodiscard]] std::vector<int> node_of_rank(const Communicator& communicator);

}  // namespace isoscale::comm
