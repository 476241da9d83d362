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
#include "runner/measure/measure_steps.hpp"
#include "workloads/api/workload.hpp"

/// Plays one case of a micro-benchmark until its time is known well enough, and compares its
/// results bit for bit.
namespace isoscale::runner {

/// The time that a case may take, the longest wait for another rank in it (0 = for ever), and the
/// bounds that the device sets for its plays.
struct CaseLimits {
  units::Seconds budget{}, timeout{};
  workloads::PlayBounds bounds{};
};

/// The end of a case on one rank.
enum class CaseEnd : std::uint8_t {
  complete,
  timed_out,      ///< this rank had no answer from another one
  peer_timed_out  ///< another rank had none
};

/// One rank's record of a case.
struct CaseRecord {
  CaseEnd end = CaseEnd::complete;  ///< if not, the rest is empty
  double first_call = 0;            ///< seconds a call of the very first pass, slowest rank
  std::uint64_t times = 1;          ///< passes in each play
  std::vector<double> plays{};      ///< this rank's, seconds
  /// Plays that were late on some rank (see PlayTime) and repeated; and late plays that stand among
  /// `plays`, since too many had been repeated already.
  std::uint64_t repeated_plays = 0, late_plays = 0;
  std::vector<double> call_times{};  ///< of single calls in traced passes, seconds, slowest rank
  /// [stream][traced pass]: this rank's seconds from the stream's first start to its last end.
  std::vector<std::vector<double>> stream_times{};
  std::optional<units::Seconds> estimate{};   ///< of one pass, by the executor's library
  std::string arithmetic{};                   ///< how that library multiplies
  std::vector<machine::SampledSeries> gpu{};  ///< of this rank's GPU, during the plays
};

/// Returns the passes in one play of a case, one of which takes `pass` on the slowest rank; at
/// least 1.
[[nodiscard]] std::uint64_t passes_of_play(const workloads::Case& one, units::Seconds pass,
                                           const CaseLimits& limits);

/// apart: the case has rows for single streams, and is traced as often as it is played.
enum class Streams : std::uint8_t { joined, apart };

/// A case as this rank plays it.
struct CasePlay {
  executor::Session& session;  ///< its setup has been played
  const workloads::Case& one;
  const program::Program& section;  ///< the one that is timed
  Streams streams = Streams::joined;
  std::vector<machine::Source> gpu{};  ///< sampled beside the timed plays
};

/// Collective over `active`. Each play starts from a barrier, after which ranks run freely, and all
/// ranks make equally many plays: at least six, unless these take several budgets; then until the
/// interval of the slowest rank's times is as narrow as `effort` asks, or `budget` is used up. A
/// few traced passes follow, for the times of single calls. If a rank times out, all ranks end
/// there, and the session must be abandoned.
[[nodiscard]] CaseRecord play_case(const CasePlay& what, const comm::Communicator& active,
                                   Share share, const Effort& effort, const CaseLimits& limits);

/// The outcome of a comparison on this rank.
struct Comparison {
  std::uint64_t compared = 0, wrong = 0;  ///< elements
  std::string first;                      ///< the first wrong element; "" if none is
};

/// Compares memory with the results that a case must have, bit for bit.
class Expectations {
 public:
  /// `ranks` is the number of ranks in the mesh; `program` is this rank's.
  Expectations(const program::RankProgram& program, int ranks)
      : buffers_(program.buffers), ranks_(ranks) {}

  /// Reads the slices and compares every element. Throws base::Error if an expected result cannot
  /// be computed exactly.
  [[nodiscard]] Comparison compare(executor::Session& session,
                                   std::span<const workloads::Expectation> expected);
  /// Compares the results of multiplications whose operands product_fills() made.
  [[nodiscard]] Comparison compare(executor::Session& session,
                                   std::span<const program::Gemm> products) const;

 private:
  using Key = std::tuple<program::DType, std::vector<int>, program::Reduction>;
  /// Returns two periods of the expected values, so that any stretch up to one period is
  /// contiguous.
  [[nodiscard]] const std::vector<std::byte>& table(const workloads::Expectation& expected);

  std::vector<program::Buffer> buffers_;
  int ranks_;
  std::map<Key, std::vector<std::byte>> tables_;
};

}  // namespace isoscale::runner
