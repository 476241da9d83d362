// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The options of a session that differ from the defaults, and the faults that are injected.
namespace isoscale::program {

/// A fault that makes communication between two ranks take `factor` times as long. In the user's
/// request, `low` and `high` are ranks of the launch; in a session, ranks of the point.
struct SlowLink {
  int low = 0, high = 0;
  double factor = 1;

  bool operator==(const SlowLink&) const = default;
};

/// The fault that a rank gets stuck in the middle of its third step: it spins for ever, or it
/// throws.
enum class Stuck : std::uint8_t { no, spins, fails };

/// The faults that are injected into one rank.
struct Faults {
  double gemm_factor = 1;  ///< every GEMM takes this many times as long
  double gemm_rate = 0;    ///< FLOP/s at which GEMMs wait instead of multiplying; 0 = they multiply
  std::vector<SlowLink> slow_links = {};  ///< those that end at this rank
  /// The mean share by which compute ops are lengthened; each op draws from an exponential
  /// distribution.
  double jitter = 0;
  std::uint64_t seed = 0;  ///< of the jitter
  Stuck stuck = Stuck::no;
  int stuck_rank = 0;  ///< of the world, for messages

  [[nodiscard]] bool any() const {
    return gemm_factor != 1 || gemm_rate != 0 || !slow_links.empty() || jitter != 0 ||
           stuck != Stuck::no;
  }
  bool operator==(const Faults&) const = default;
};

/// The registration of buffers for communication. local: each rank registers the memory that it
/// communicates from with the library in advance.
enum class Registration : std::uint8_t { none, local };
[[nodiscard]] constexpr std::string_view name(Registration registration) {
  return registration == Registration::local ? "local" : "none";
}

/// Requests for one session; an executor that cannot fulfil one throws.
struct SessionOptions {
  std::string collective_algorithm{};  ///< that the library must use; "" = its own choice
  std::string collective_protocol{};   ///< that the library must use; "" = its own choice
  Registration registration = Registration::none;
  std::optional<int> numa_node{};  ///< node of host memory; absent: the system's choice
  Faults faults{};                 ///< of this rank

  bool operator==(const SessionOptions&) const = default;
};

}  // namespace isoscale::program
