// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The records of a run that executors, and samplers of devices, fill themselves.
namespace isoscale::results {

/// The algorithm that a library was told to use for multiplications of one shape.
struct GemmChoice {
  std::string shape;             ///< key of the GEMM problem; equal problems have equal keys
  std::string algorithm;         ///< the library's opaque description, in hexadecimal
  std::int64_t workspace = 0;    ///< bytes
  std::optional<double> time{};  ///< seconds of one call when timed; absent: the user gave it
  int candidates = 0;            ///< number of timed algorithms; 0: the user gave the algorithm
  /// The arithmetic units, input type and accumulator type that the library reports: "tensor cores,
  /// tf32 inputs, f32 sums"; "" = not known.
  std::string arithmetic{};

  bool operator==(const GemmChoice&) const = default;
};

/// The times of creating one of a point's communicators and of its first call.
struct CommunicatorTime {
  std::string name;  ///< "world", "dp on comm", "pp, even links"
  int ranks = 0;
  /// Seconds, slowest rank; 0: the communicator was kept from an earlier session.
  double creation = 0;
  std::optional<double> first_call{};  ///< seconds, slowest rank; absent: it was never called
};

/// One quantity of a device, sampled while a point was measured. Times are seconds after the first
/// step of the point began, on the clock of rank 0.
struct DeviceSeries {
  int rank = 0;          ///< the rank of the point that sampled it
  std::string device{};  ///< "gpu 0", "cpu", "package 0", "mlx5_0 port 1"
  /// The quantity: "sm_clock", "power", "energy", "temperature", "throttle_reasons", ...
  std::string quantity{};
  std::string unit{};  ///< "Hz", "W", "J", "K", "s", "1", "B"
  std::vector<double> time{}, value{};
};

}  // namespace isoscale::results
