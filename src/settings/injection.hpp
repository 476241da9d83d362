// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "program/program.hpp"
#include "units/quantity.hpp"

/// The faults that --inject adds to a run on purpose. Their size is known, so users can check what
/// a report says about them. Rank numbers are those in MPI_COMM_WORLD.
namespace isoscale::settings {

/// "slow-rank=3:1.2": every GEMM of rank 3 takes 1.2 times as long.
struct SlowRank {
  int rank = 0;
  double factor = 1;
  bool operator==(const SlowRank&) const = default;
};
/// "jitter=5%": every compute op of every rank takes longer by a random share of its time, which is
/// exponentially distributed with this mean.
struct Jitter {
  double mean = 0;
  bool operator==(const Jitter&) const = default;
};
/// "delay=20GFLOP/s": every GEMM of every rank is replaced by a sleep, as long as the GEMM would
/// take at that rate. Ranks that share cores then behave as if each had a core of its own.
struct Delay {
  units::FlopsPerSecond rate{};
  bool operator==(const Delay&) const = default;
};
/// "clock=2:5ms", "clock=2:-5ms:20ppm": the clock of rank 2 is ahead by the given time, and runs
/// too fast by the given share of time (its drift).
struct ClockError {
  int rank = 0;
  units::Seconds offset{};
  double drift = 0;  ///< seconds that the clock gains per second
  bool operator==(const ClockError&) const = default;
};
/// "stuck=2:spin", "stuck=2:throw": when rank 2 runs a program for the third time, it stops in the
/// middle of it: with "spin" in an endless loop, with "throw" by an exception. Other ranks wait.
struct StuckRank {
  int rank = 0;
  program::Stuck how = program::Stuck::spins;
  bool operator==(const StuckRank&) const = default;
};
/// "flip=2": in every second replay of --soak, one bit of a result of rank 2 is flipped.
struct FlippedBits {
  int rank = 0;
  bool operator==(const FlippedBits&) const = default;
};
/// "slow-link=0-1:2": communication between ranks 0 and 1 takes twice as long, on both ranks.
using program::SlowLink;

struct Injection {
  std::string text;  ///< the fault as the user wrote it: "slow-rank=3:1.2"
  std::variant<SlowRank, SlowLink, Jitter, ClockError, Delay, StuckRank, FlippedBits> what;

  bool operator==(const Injection&) const = default;
};

/// Parses a comma-separated list of injections. Throws base::UsageError or std::invalid_argument if
/// one is invalid, or if the same kind of fault is given twice for the same ranks; the message
/// begins with the invalid text.
[[nodiscard]] std::vector<Injection> parse_injections(std::string_view text);
/// Writes injections as a TOML array; "" when there are none.
[[nodiscard]] std::string write_injections(const std::vector<Injection>& injections);

/// Returns the ranks that an injection names, ascending; empty if it applies to all ranks.
[[nodiscard]] std::vector<int> ranks_of(const Injection& injection);
/// Returns the texts of the injections that change how ops are run: all except clock errors and
/// flipped bits. Only the host can apply them. Example: "slow-rank=3:1.2, jitter=5%"; "" if none.
[[nodiscard]] std::string slowing_injections(const std::vector<Injection>& injections);

}  // namespace isoscale::settings
