// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <ranges>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "units/quantity.hpp"

/// Starts and ends MPI in this process, turns its error codes into exceptions, provides the clock
/// for all times that hosts measure, and wraps communicators, over which ranks gather data, vote
/// on whether to go on, and tell each other of errors.
namespace isoscale::comm {

class MpiError : public base::Error {
 public:
  using Error::Error;
};

/// Throws MpiError with MPI's own message unless `code` is MPI_SUCCESS. The return codes of MPI
/// calls are passed to this function or, where no exception may be thrown, to warn_unless_ok().
/// They are ignored only where a failure does not matter.
void check(int code, std::source_location where = std::source_location::current());
/// Writes the message that check() would throw to standard error. It is for destructors and other
/// code whose caller cannot catch an exception.
void warn_unless_ok(int code,
                    std::source_location where = std::source_location::current()) noexcept;

/// Calls MPI_Init_thread (with MPI_THREAD_MULTIPLE) when constructed and MPI_Finalize when
/// destroyed. It is made once, before all objects that use MPI, so that it is destroyed after them.
/// If an exception in flight destroys it, it does not finalize MPI, since peers may be in a
/// collective.
class Environment {
 public:
  Environment(int* argc, char*** argv);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Ends every process of the job. It is called by a rank that has failed while its peers wait for
  /// it, and if the job hangs.
  [[noreturn]] static void abort_job(int exit_code) noexcept;
  [[nodiscard]] static std::string library_version();  ///< first line, "Open MPI v4.1.4, ..."
};

/// True if several threads of a process may call MPI at once (MPI_THREAD_MULTIPLE).
[[nodiscard]] bool threads_may_talk();

/// Returns the current time of the steady clock, with which the host measures all times.
[[nodiscard]] units::Nanoseconds now();

struct CommunicatorTraits {
  using type = MPI_Comm;
  static type null() { return MPI_COMM_NULL; }
  static void free(type communicator) noexcept;
};

/// Counts the collective calls that communicators make. Any thread may read the counts.
struct CallCount {
  std::atomic<std::uint64_t> begun{0}, ended{0};
  std::atomic<std::uint64_t> others{0};  ///< completed collectives of other libraries, which
                                         ///< count_other() reports
};

/// The size in bytes of the largest message that broadcast(), all_max() and gather() send. Larger
/// data is sent in blocks, since MPI counts are int, and since blocks bound the memory that a slow
/// receiver needs for messages that have arrived.
inline constexpr std::size_t block_bytes = std::size_t{64} << 20;

/// Returns `data` cut into consecutive blocks of at most block_bytes; no blocks if `data` is empty.
template <class T>
[[nodiscard]] std::vector<std::span<T>> blocks(std::span<T> data) {
  constexpr std::size_t most = block_bytes / sizeof(T);
  std::vector<std::span<T>> parts;
  for (std::size_t first = 0; first < data.size(); first += most) {
    parts.push_back(data.subspan(first, std::min(most, data.size() - first)));
  }
  return parts;
}

/// A value that ranks send to each other as its bytes, since all of them run the same program on
/// machines of one kind.
template <class T>
concept Value = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::ranges::range<T>;

/// Owns an MPI communicator with MPI_ERRORS_RETURN set; move-only. All of its ranks must make its
/// collective calls in the same order.
class Communicator {
 public:
  Communicator() = default;
  [[nodiscard]] static Communicator world();  ///< a duplicate of MPI_COMM_WORLD

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] MPI_Comm get() const { return handle_.get(); }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(handle_); }

  /// Collective: returns the communicator of the ranks that pass the same colour, in which they are
  /// numbered in the order of their keys. A rank with a colour < 0 gets an empty communicator.
  [[nodiscard]] Communicator split(int colour, int key) const;
  [[nodiscard]] Communicator duplicate() const;
  /// Collective: returns the communicator of those ranks of this one that are on this rank's node,
  /// where they share memory.
  [[nodiscard]] Communicator split_node() const;
  /// Counts collective calls in `calls` from now on, including calls on communicators that are made
  /// from this one later.
  void count_calls(std::shared_ptr<CallCount> calls) { calls_ = std::move(calls); }
  /// Counts a collective that another library has completed among these ranks.
  void count_other() const {
    if (calls_) calls_->others.fetch_add(1, std::memory_order_relaxed);
  }
  /// Returns for each rank of this communicator its rank in `other`.
  [[nodiscard]] std::vector<int> ranks_in(const Communicator& other) const;
  /// Returns the ranks that members of this communicator have in MPI_COMM_WORLD; messages to users
  /// name ranks by these numbers.
  [[nodiscard]] std::vector<int> world_ranks(const std::vector<int>& members) const;
  [[nodiscard]] int world_rank(int member) const { return world_ranks({member}).front(); }
  /// Drops the communicator without freeing it: peers may still be stuck in it.
  void abandon() noexcept;

  void barrier() const;
  /// Waits for all ranks like a barrier, but sleeps `pause` between polls, so that no core or link
  /// is kept busy.
  void quiet_barrier(units::Seconds pause = units::Seconds{0.01}) const;
  void broadcast(std::span<std::byte> data, int root = 0) const;
  [[nodiscard]] std::string broadcast(std::string text, int root = 0) const;
  template <Value T>
  [[nodiscard]] T broadcast(T value, int root = 0) const {
    broadcast(std::as_writable_bytes(std::span{&value, 1}), root);
    return value;
  }
  [[nodiscard]] double all_max(double value) const { return all_reduce(value, MPI_MAX); }
  [[nodiscard]] double all_min(double value) const { return all_reduce(value, MPI_MIN); }
  [[nodiscard]] double all_sum(double value) const { return all_reduce(value, MPI_SUM); }
  void all_max(std::span<double> values) const;  ///< element by element, in place
  /// Returns the bytes of all ranks on rank 0, indexed by rank; returns an empty vector on other
  /// ranks. A part may exceed 2 GiB, since it is sent in blocks.
  [[nodiscard]] std::vector<std::vector<std::byte>> gather(std::span<const std::byte> part) const;
  /// Returns the texts of all ranks on rank 0, indexed by rank; returns an empty vector on other
  /// ranks. It is for small texts, which travel along a tree: no rank receives from more than about
  /// log2(ranks) other ranks.
  [[nodiscard]] std::vector<std::string> gather(std::string_view text) const;
  /// Returns the texts of all ranks on every rank.
  [[nodiscard]] std::vector<std::string> all_gather(std::string_view text) const;
  template <Value T>
  [[nodiscard]] std::vector<T> all_gather(T value) const {
    std::vector<T> values(static_cast<std::size_t>(size_));
    all_gather(std::as_bytes(std::span{&value, 1}), values.data());
    return values;
  }

 private:
  explicit Communicator(MPI_Comm owned, std::shared_ptr<CallCount> calls = nullptr);
  [[nodiscard]] double all_reduce(double value, MPI_Op operation) const;
  [[nodiscard]] std::string gather_records(std::string_view text) const;
  void all_gather(std::span<const std::byte> mine, void* all) const;

  base::Handle<CommunicatorTraits> handle_;
  std::shared_ptr<CallCount> calls_;  ///< null: calls are not counted
  int rank_ = 0;
  int size_ = 1;
};

/// The outcome of a vote, the same on every rank. If all ranks voted yes, `ok` is true and `why` is
/// "". Otherwise `why` is the reason of the lowest rank that voted no, such as "rank 3: no memory".
/// The number in front is the rank in MPI_COMM_WORLD. It is not added if the reason begins with a
/// rank already.
struct Vote {
  bool ok = true;
  std::string why;
};
/// Collective: votes on whether all ranks can go on. A rank without a problem passes an empty
/// `problem`.
[[nodiscard]] Vote all_ok(const Communicator& communicator, std::string_view problem);

/// Returns a sentence that describes an error. For std::bad_alloc, which has no details, the
/// sentence says how much memory this process holds and how much is free on its node.
[[nodiscard]] std::string problem_of(const std::exception& error);

/// Calls `work` and returns a description of the exception that it throws; "" if it throws none.
template <class Work>
[[nodiscard]] std::string problem_in(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return problem_of(error);
  }
  return "";
}

/// Collective: runs `work` on rank 0. If it throws an error with the exit code `usage`, every rank
/// throws base::UsageError; for any other error, every rank throws base::AgreedError.
template <class Work>
void on_root(const Communicator& world, const Work& work) {
  std::string problem;
  base::ExitCode code = base::ExitCode::done;
  if (world.rank() == 0) {
    try {
      work();
    } catch (const base::Error& error) {
      problem = error.what();
      code = error.exit_code();
    } catch (const std::exception& error) {
      problem = problem_of(error);
      code = base::ExitCode::failed;
    }
  }
  code = world.broadcast(code);
  if (code == base::ExitCode::done) return;
  problem = world.broadcast(problem);
  if (code == base::ExitCode::usage) throw base::UsageError(problem);
  throw base::AgreedError(problem);
}

/// Collective: returns the number of each rank's node. Nodes are numbered from 0 in the order in
/// which they first appear by rank; the result is the same on all ranks.
[[nodiscard]] std::vector<int> node_of_rank(const Communicator& communicator);

}  // namespace isoscale::comm
