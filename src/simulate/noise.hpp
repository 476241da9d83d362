// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "program/outline.hpp"
#include "simulate/layout.hpp"
#include "simulate/machine.hpp"

namespace isoscale::program {
struct ProgramSet;
}

/// Draws random noise of compute: the deviation of a rank's compute time in a step from its mean,
/// relative to the mean. Each draw is computed from a key, so it does not depend on earlier draws.
/// Also computes how much this noise delays a step.
namespace isoscale::simulate {

struct Classes;  // simulate.hpp
struct Costs;

/// Returns the x with P(Z <= x) = p for a standard normal Z and 0 < p < 1, within 1e-9, by Peter
/// Acklam's rational approximation and one step of Halley's method.
[[nodiscard]] double normal_quantile(double p);

/// Returns a standard normal draw made from 64 random bits, by a fast method: the bits choose one
/// of 65536 equally likely quantiles, which are scaled to variance 1.
[[nodiscard]] double quick_normal(std::uint64_t bits);

/// Returns 64 pseudo-random bits that depend only on the key: splitmix64 (Steele, Lea, Flood,
/// OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15ULL;
  key = (key ^ (key >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  key = (key ^ (key >> 27U)) * 0x94d049bb133111ebULL;
  return key ^ (key >> 31U);
}
/// Returns a pseudo-random number in (0, 1) that depends only on the key.
[[nodiscard]] constexpr double uniform(std::uint64_t key) {
  return (static_cast<double>(mixed(key) >> 11U) + 0.5) * 0x1p-53;
}

/// Returns the constant deviation of each of `ranks` ranks: a factor of Noise::standing, minus 1; 0
/// if there are no factors. With n factors, the first n ranks take them in order, and each further
/// n ranks take every factor once, in an order that depends on the seed.
[[nodiscard]] std::vector<double> standing_deviations(const Noise& noise, int ranks,
                                                      std::uint64_t seed = 1);

/// Returns the deviation of each rank of the layout in each step; that of rank r in step s is at
/// index s * ranks + r. It is the sum of three parts, but at least -1: the rank's constant
/// deviation, one that all ranks of its node share in the step, and the rank's own one in the step.
/// Each depends only on seed, rank, node and step.
[[nodiscard]] std::vector<double> deviations(const Noise& noise, const Layout& layout, int steps,
                                             std::uint64_t seed = 1);

/// Returns 4096 deviations for Noise::draws, ascending, with stragglers: in each step the share
/// `share` of the ranks takes longer by `size`, relative to the mean time, and the others deviate
/// normally with standard deviation `rank`. A share below 1/4096 may be lost by rounding.
[[nodiscard]] std::vector<double> straggling_draws(double rank, double share, double size);

/// Returns the p-quantile (0 < p < 1) of the ascending `draws`, interpolated linearly between them.
/// Below the first and above the last it is constant.
[[nodiscard]] double quantile(const std::vector<double>& draws, double p);

// The functions below (noise_delay.cpp) compute how much noise delays a step, in two ways: by
// simulating every rank, or by drawing the deviations of all ranks and finding the slowest of those
// that wait for each other.

/// Simulates the whole mesh with the op times of its classes, and returns the seconds of the
/// slowest rank in each of `steps` steps, after one step of warm-up. Each rank's compute times are
/// multiplied by 1 + d, where d is the sum of three deviations drawn from `noise`: a constant one
/// of the rank and, for each step, one of its node and one of the rank. The times of single ops
/// vary by Noise::op in addition.
[[nodiscard]] std::vector<double> play_each_rank(const program::ProgramSet& set,
                                                 const Classes& classes, const Costs& class_costs,
                                                 const Noise& noise, const Layout& layout,
                                                 int steps = 8, std::uint64_t seed = 1);

/// Returns the seconds that the noise of all ranks adds to a step of the classes with these op
/// times. It does not simulate each rank: it draws the deviations of all ranks in many steps, finds
/// in each step the slowest of the ranks that wait for each other, and returns the mean over the
/// steps. The communication in the programs shows which ranks wait for each other.
///
/// If the step is a short one whose times are later scaled up to those of a longer step, `share` is
/// the length of the short step over that of the longer one. The delay is then scaled up in
/// proportion to the length, but the standard deviation that comes from the noise of single ops
/// grows only with the root of the length. The function therefore uses the standard deviation of
/// the longer step times `share`.
[[nodiscard]] double expected_delay(const program::ProgramSet& set, const Classes& classes,
                                    const Costs& costs, const Noise& noise, const Layout& layout,
                                    double share = 1);

/// Returns the tight axes: those along which ranks wait for each other all through a step, and not
/// only at its end. An axis is tight if, in the program of every class, no stretch of computation
/// without communication along the axis is longer than half of the step's computation.
/// Communication on another stream counts where the computation waits for it.
[[nodiscard]] mesh::AxisSet tight_axes(const mesh::Shape& mesh, const program::OutlineSet& classes,
                                       const Costs& costs);

}  // namespace isoscale::simulate
