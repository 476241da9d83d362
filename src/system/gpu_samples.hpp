// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "system/nvml.hpp"
#include "system/sample_source.hpp"

namespace isoscale::system {

/// What NVML tells of the GPU (or MIG instance) with this UUID while it works, as one source:
/// "sm_clock", "memory_clock" (Hz), "power" (W), "energy" (J, a counter), "temperature" (K),
/// "utilisation" (1), "throttle_reasons" (the bits of nvmlClocksEventReasons), "ecc_corrected",
/// "ecc_uncorrected", "nvlink_sent_bytes", "nvlink_received_bytes" (counters). A quantity that the
/// library or the GPU does not offer is no channel; without any there is no source. The library
/// outlives it. With `wanted`, these quantities alone.
[[nodiscard]] std::vector<Source> gpu_sources(const NvmlLibrary& library, std::string_view uuid,
                                              std::span<const std::string_view> wanted = {});

}  // namespace isoscale::system
