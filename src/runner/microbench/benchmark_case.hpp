// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "comm/communicator.hpp"
#include "executor/executor.hpp"
#include "machine/device_sampler.hpp"
#include "program/program.hpp"
#include "runner/measure/point.hpp"
#include "workloads/api/workload.hpp"

/// Measures micro-benchmarks: plays each case until its time is known precisely enough, and
/// compares its results with the expected ones, bit for bit.
namespace isoscale::runner::microbench {

/// The limits of a case: the time that it should take (`budget`), the longest wait for another rank
/// (`timeout`; 0 = no limit), and the device's limits for one play (`bounds`).
struct CaseLimits {
  units::Seconds budget{}, timeout{};
  workloads::PlayBounds bounds{};
};

/// The end of a case on one rank.
enum class CaseEnd : std::uint8_t {
  complete,
  timed_out,      ///< this rank got no answer from another one in time
  peer_timed_out  ///< another rank got no answer in time
};

/// The time of one stream in one traced pass: from its first start to its last end.
struct StreamTime {
  std::uint32_t stream = 0;
  double seconds = 0;

  bool operator==(const StreamTime&) const = default;
};

/// One rank's record of a case.
struct CaseRecord {
  CaseEnd end = CaseEnd::complete;  ///< unless complete, the other members have no meaning
  double first_call = 0;            ///< seconds of one call in the first pass, on the slowest rank
  std::uint64_t times = 1;          ///< passes in each play
  std::vector<double> plays{};      ///< seconds of each play on this rank
  /// The number of plays that were late on some rank (see PlayTime) and were repeated, and the
  /// number of late plays that are kept in `plays` because too many had already been repeated.
  std::uint64_t repeated_plays = 0, late_plays = 0;
  std::vector<double> call_times{};  ///< seconds of each call in traced passes, on the slowest rank
  /// The time of each stream in each traced pass on this rank.
  std::vector<StreamTime> stream_times{};
  std::optional<units::Seconds> estimate{};  ///< time of one pass that the library expects
  std::string arithmetic{};  ///< arithmetic of multiplications, in the library's words
  std::vector<results::DeviceSeries> gpu{};  ///< samples of this rank's GPU, during the plays
};

/// Returns the number of passes in each play of a case, at least 1. `pass` is the time of one pass
/// on the slowest rank.
[[nodiscard]] std::uint64_t passes_of_play(const workloads::Case& one, units::Seconds pass,
                                           const CaseLimits& limits);

/// apart: the case has rows for single streams, so as many passes are traced as plays are timed.
/// joined: it has no such rows.
enum class Streams : std::uint8_t { joined, apart };

/// The input of play_case() on this rank.
struct CasePlay {
  executor::Session& session;  ///< its setup has been played
  const workloads::Case& one;
  const program::Program& section;  ///< the section that is timed
  Streams streams = Streams::joined;
  std::vector<machine::Source> gpu{};  ///< sampled during the timed plays
  const comm::Communicator& active;
  measure::Share share = measure::Share::in_point;
  const plan::Effort& effort;
  CaseLimits limits{};
};

/// Collective over CasePlay::active: plays a case and returns this rank's record. Each play starts
/// from a barrier. All ranks make the same number of plays: at least six, unless six would take
/// more than four times the budget. More plays follow until the interval of the slowest rank's
/// times is as narrow as `effort` asks, or the budget is used up. A few traced passes then give the
/// times of single calls. If a rank times out, the case ends on all ranks, and the session must be
/// abandoned.
[[nodiscard]] CaseRecord play_case(const CasePlay& what);

/// The result of comparing memory with expected values on this rank.
struct Comparison {
  std::uint64_t compared = 0, wrong = 0;  ///< numbers of elements
  std::string first;                      ///< the first wrong element; "" if none is
};

/// Compares the results in memory with the expected results of a case, bit for bit.
class Expectations {
 public:
  /// `ranks` is the number of ranks in the mesh; `program` is this rank's.
  Expectations(const program::RankProgram& program, int ranks)
      : buffers_(program.buffers), ranks_(ranks) {}

  /// Reads the slices from memory and compares every element. Throws base::Error if an expected
  /// value cannot be computed exactly.
  [[nodiscard]] Comparison compare(executor::Session& session,
                                   std::span<const workloads::Expectation> expected);
  /// Like compare() above, for the products of matrices that product_fills() has filled.
  [[nodiscard]] Comparison compare(executor::Session& session,
                                   std::span<const program::Gemm> products) const;

 private:
  using Key = std::tuple<program::DType, std::vector<int>, program::Reduction>;
  /// Returns two periods of the expected values, so that any part of up to one period is
  /// contiguous.
  [[nodiscard]] const std::vector<std::byte>& table(const workloads::Expectation& expected);

  std::vector<program::Buffer> buffers_;
  int ranks_;
  std::map<Key, std::vector<std::byte>> tables_;
};

/// Collective over `point.active`: measures and checks a micro-benchmark, one batch of cases after
/// another.
void run_bench(const measure::MeasuredPoint& point);

}  // namespace isoscale::runner::microbench
