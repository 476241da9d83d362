// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/calibration_data.hpp"
#include "results/hdf5.hpp"

/// A calibration as columns, the form that the file has it in. NaN = absent throughout.
namespace isoscale::results {

/// Samples [sample_begin[i], sample_begin[i+1]) are those of curve i.
struct CurveTable {
  std::vector<std::string> op, dtype, link_class, implementation, labels, form;
  std::vector<std::int32_t> members, nodes;
  std::vector<double> latency, latency_lower, latency_upper;
  std::vector<double> bandwidth, bandwidth_lower, bandwidth_upper, error;
  std::vector<std::uint64_t> sample_begin{0};
  std::vector<double> sample_bytes, sample_time, sample_fitted, sample_held_out;
};

/// Counts [count_begin[i], count_begin[i+1]) are those of row i.
struct GrowthTable {
  std::vector<std::string> op, dtype, link_class, implementation, law;
  std::vector<double> base, slope, bandwidth_factor;
  std::vector<std::uint64_t> count_begin{0};
  std::vector<std::int32_t> count_members;
  std::vector<double> count_latency, count_bandwidth;
};

struct GemmRateTable {
  std::vector<std::string> dtype, cache, labels;
  std::vector<double> m, n, k, batch, rate, held_out;
};

struct CeilingTable {
  std::vector<std::string> dtype, cache, labels;
  std::vector<double> rate, m, n, k, batch, error;
};

/// Writes all of it into a group that is empty.
void put_calibration(hdf5::Group& group, const CalibrationData& calibration);
/// Throws base::Error when something is missing or does not fit together.
[[nodiscard]] CalibrationData get_calibration(const hdf5::Group& group, int minor);
/// Bytes that it needs at most, structure by a generous guess.
[[nodiscard]] std::uint64_t room_for(const CalibrationData& calibration);

}  // namespace isoscale::results
