// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

/// What a session does worse than it could, on purpose.
namespace isoscale::program {

/// Two ranks between which communication takes `factor` times as long: of the launch where it is
/// asked for, of the point where it is played.
struct SlowLink {
  int low = 0, high = 0;
  double factor = 1;

  bool operator==(const SlowLink&) const = default;
};

/// What a rank does in the middle of its third step instead of going on.
enum class Stuck : std::uint8_t { no, spins, fails };

/// Of one rank.
struct Faults {
  double gemm_factor = 1;  ///< every GEMM takes so many times as long
  double gemm_rate = 0;    ///< FLOP/s that GEMMs wait at instead of multiplying; 0 = they multiply
  std::vector<SlowLink> slow_links = {};  ///< that end at this rank
  /// Mean share by which compute ops are lengthened, each by an exponentially distributed one.
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

}  // namespace isoscale::program
