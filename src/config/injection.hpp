// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "program/session_options.hpp"
#include "units/quantity.hpp"

/// The option --inject puts faults of a known size into a run on purpose, to see what a report
/// makes of them. Ranks are those of the launch.
namespace isoscale::config {

/// "slow-rank=3:1.2": every GEMM of that rank takes 1.2 times as long.
struct SlowRank {
  int rank = 0;
  double factor = 1;
  bool operator==(const SlowRank&) const = default;
};
/// "jitter=5%": every compute op of every rank is lengthened by an exponentially distributed share.
struct Jitter {
  double mean = 0;
  bool operator==(const Jitter&) const = default;
};
/// "delay=20GFLOP/s": every GEMM of every rank waits, asleep, for as long as it would take at that
/// rate, and multiplies nothing: ranks that share cores then compute as if each had its own.
struct Delay {
  units::FlopsPerSecond rate{};
  bool operator==(const Delay&) const = default;
};
/// "clock=2:5ms", "clock=2:-5ms:20ppm": that rank's clock is fast by so much, and gains so much.
struct ClockError {
  int rank = 0;
  units::Seconds offset{};
  double drift = 0;  ///< seconds per second
  bool operator==(const ClockError&) const = default;
};
/// "stuck=2:spin", "stuck=2:throw": that rank computes for ever in the middle of its third step, or
/// fails there, while the others wait for it.
struct StuckRank {
  int rank = 0;
  program::Stuck how = program::Stuck::spins;
  bool operator==(const StuckRank&) const = default;
};
/// "flip=2": in every second replay of --soak a bit of what that rank computed is flipped.
struct FlippedBits {
  int rank = 0;
  bool operator==(const FlippedBits&) const = default;
};
/// "slow-link=0-1:2": what these two ranks do together takes twice as long, on both.
using program::SlowLink;

struct Injection {
  std::string text;  ///< as given
  std::variant<SlowRank, SlowLink, Jitter, ClockError, Delay, StuckRank, FlippedBits> what;

  bool operator==(const Injection&) const = default;
};

/// Injections between commas. Throws base::UsageError or std::invalid_argument with a sentence that
/// begins with the value; also when one thing is given twice.
[[nodiscard]] std::vector<Injection> parse_injections(std::string_view text);
/// Writes injections as a TOML array; "" when there are none.
[[nodiscard]] std::string write_injections(const std::vector<Injection>& injections);

/// The ranks that an injection names, ascending; none: it is about all.
[[nodiscard]] std::vector<int> ranks_of(const Injection& injection);
/// The texts of those that change how long ops take, which only the host does, "slow-rank=3:1.2,
/// jitter=5%"; "" when there are none.
[[nodiscard]] std::string slowing_injections(const std::vector<Injection>& injections);

}  // namespace isoscale::config
