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
#include "runner/measure/point_context.hpp"
#include "workloads/api/workload.hpp"

/// Measures the cases of micro-benchmarks: plays each case until its time is known precisely enough
/// or its budget is used up, and compares its results with the expected results, bit for bit.
namespace isoscale::runner::microbench {

/// The limits of a case. budget: the time that measuring it should take. timeout: the longest wait
/// for another rank; 0 = no limit. bounds: the device's limits for one play.
struct CaseLimits {
  units::Seconds budget{}, timeout{};
  workloads::PlayBounds bounds{};
};

/// The end of a case on one rank.
enum class CaseEnd : std::uint8_t {
  complete,
  timed_out,      ///< this rank did not get an answer from another rank in time
  peer_timed_out  ///< another rank did not get an answer in time
};

/// The time of one stream in one traced pass, from the first start to the last end of its ops.
struct StreamTime {
  std::uint32_t stream = 0;
  double seconds = 0;

  bool operator==(const StreamTime&) const = default;
};

/// The record of a case on one rank. A play runs the section of the case `times` times in a row,
/// and each of these runs is a pass. A pass makes Case::calls calls of what is measured.
struct CaseRecord {
  CaseEnd end = CaseEnd::complete;  ///< unless it is complete, the other members have no meaning
  double first_call = 0;            ///< seconds of one call in the first pass, on the slowest rank
  std::uint64_t times = 1;          ///< passes in each play
  std::vector<double> plays{};      ///< seconds of each play on this rank
  /// A play is late if some rank did not launch its GPU work in time, so that the play's time
  /// includes launches. repeated_plays: the number of late plays that were repeated and left out.
  /// late_plays: the number of late plays in `plays`, made when no more repeats were allowed.
  std::uint64_t repeated_plays = 0, late_plays = 0;
  std::vector<double> call_times{};  ///< seconds of each call in traced passes, on the slowest rank
  /// The times of each stream in each traced pass on this rank.
  std::vector<StreamTime> stream_times{};
  /// The communication library's own estimate of the time of one pass.
  std::optional<units::Seconds> estimate{};
  /// The arithmetic of matrix multiplications, in the library's words; see Session::arithmetic().
  std::string arithmetic{};
  std::vector<results::DeviceSeries> gpu{};  ///< samples of this rank's GPU, taken during the plays
};

/// Returns the number of passes in each play of the case `one`, at least 1, so that a play is long
/// enough to be timed well. `pass` is the time of one pass on the slowest rank.
[[nodiscard]] std::uint64_t passes_of_play(const workloads::Case& one, units::Seconds pass,
                                           const CaseLimits& limits);

/// Tells if a case has result rows for single streams. apart: it has, so as many passes should be
/// traced as plays are timed, if the budget allows. joined: it has none.
enum class Streams : std::uint8_t { joined, apart };

/// The input of play_case() on this rank.
struct CasePlay {
  executor::Session& session;  ///< its setup section has been played
  const workloads::Case& one;
  const program::Program& section;  ///< the section of the case, which is timed
  Streams streams = Streams::joined;
  std::vector<machine::Source> gpu{};  ///< sampled on this rank's GPU during timed plays
  const comm::Communicator& active;
  measure::Share share = measure::Share::in_point;
  const plan::Effort& effort;
  CaseLimits limits{};
};

/// Collective over CasePlay::active: plays a case and returns this rank's record. Each play begins
/// with a barrier. All ranks make the same number of plays: at least six, unless six would take
/// more than four times the budget and more than 0.1 s. More plays follow, up to 200 in all, until
/// the confidence interval of the slowest rank's times is as narrow as `effort` asks, or the budget
/// is used up. If the case has CallsAreSpans::yes, some passes are then traced to time single
/// calls. If a rank times out, the case ends on all ranks, and the session must be abandoned.
[[nodiscard]] CaseRecord play_case(const CasePlay& what);

/// The result of comparing elements in memory with expected values on this rank.
struct Comparison {
  /// The number of elements that were compared, and of those that were wrong.
  std::uint64_t compared = 0, wrong = 0;
  std::string first;  ///< a text about the first wrong element; "" if none is wrong
};

/// Compares the results of a case in a session's memory with the expected ones, bit for bit.
class Expectations {
 public:
  /// `program` is this rank's program; `ranks` is the number of ranks in the mesh.
  Expectations(const program::RankProgram& program, int ranks)
      : buffers_(program.buffers), ranks_(ranks) {}

  /// Reads the slices of the expectations and compares every element. Throws base::Error if an
  /// expected value cannot be computed exactly.
  [[nodiscard]] Comparison compare(executor::Session& session,
                                   std::span<const workloads::Expectation> expected);
  /// Does the same for products of matrices whose elements come from product_fills().
  [[nodiscard]] Comparison compare(executor::Session& session,
                                   std::span<const program::Gemm> products) const;

 private:
  using Key = std::tuple<program::DType, std::vector<int>, program::Reduction>;
  /// Returns the bytes of the expected values, which repeat with a period. The table has two
  /// periods, so that any range of up to one period is contiguous in it, wherever it begins.
  [[nodiscard]] const std::vector<std::byte>& table(const workloads::Expectation& expected);

  std::vector<program::Buffer> buffers_;
  int ranks_;
  std::map<Key, std::vector<std::byte>> tables_;
};

/// Collective over `point.active`: measures a micro-benchmark and checks its results. Its cases
/// come in batches, each of which has its own programs.
void run_bench(const measure::MeasuredPoint& point);

}  // namespace isoscale::runner::microbench
