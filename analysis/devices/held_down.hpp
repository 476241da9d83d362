// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "results/run_data.hpp"

/// Why the clocks of a GPU were held down, from the reasons that NVML gave while a point ran.
namespace isoscale::analysis {

/// The bits that a sample holds; none where it is no number that a double keeps bit by bit.
[[nodiscard]] std::optional<std::uint64_t> sampled_bits(double sample);

/// The names of the reasons among `bits` that hold clocks down.
[[nodiscard]] std::vector<std::string_view> reason_names(std::uint64_t bits);

/// A reason that is worth a word.
struct HeldDown {
  std::string_view reason;  ///< "hardware thermal slowdown"
  double share = 0;         ///< of the samples
};

/// Finds what held clocks down in a series of throttle_reasons, from `begin` seconds on. Reasons of
/// hardware and temperature count whenever they are seen, others (software power cap, sync boost)
/// from a tenth of the samples. Idleness and settings by an administrator do not count.
[[nodiscard]] std::vector<HeldDown> held_down(const results::DeviceSeries& series, double begin);

}  // namespace isoscale::analysis
